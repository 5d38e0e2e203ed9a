package io.quotascope.spark;

import java.io.IOException;
import java.io.StreamTokenizer;
import java.io.StringReader;
import java.util.regex.Pattern;

/** Names of clients and users, without what differs by run, executor or instance. */
final class Labels {
  private static final int LONGEST = 256;
  /** The connector's group ids end with a UUID, a hash of the checkpoint's path and the place where the client is. */
  private static final Pattern RUN =
      Pattern.compile(
          "-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(--?\\d+)?(-(executor|driver))?(-\\d+)*$");
  /** Clients without an id of their own are called `producer-3` and `consumer-group-3`. */
  private static final Pattern NUMBER = Pattern.compile("^((?:consumer|producer)(?:-.*)?)-\\d+$", Pattern.DOTALL);

  private Labels() {}

  static String client(String id) {
    String name = RUN.matcher(id).replaceFirst("");
    return capped(name.equals(id) ? NUMBER.matcher(id).replaceFirst("$1") : name);
  }

  /**
   * The `username` of a PLAIN or SCRAM login, else nothing. That of a delegation token is the token's id, which says nothing of the
   * principal.
   */
  static String user(String jaas) {
    StreamTokenizer tokens = new StreamTokenizer(new StringReader(jaas));
    tokens.slashSlashComments(true);
    tokens.slashStarComments(true);
    tokens.wordChars('-', '-');
    tokens.wordChars('_', '_');
    tokens.wordChars('$', '$');
    try {
      return capped(named(tokens));
    } catch (IOException impossible) {
      return "";
    }
  }

  private static String named(StreamTokenizer tokens) throws IOException {
    String user = "";
    String key = "";
    while (tokens.nextToken() != StreamTokenizer.TT_EOF) {
      if (tokens.ttype == '=') {
        tokens.nextToken();
        if (key.equals("username")) {
          user = tokens.sval == null ? "" : tokens.sval;
        } else if (key.equals("tokenauth") && "true".equalsIgnoreCase(tokens.sval)) {
          return "";
        }
      }
      key = tokens.ttype == StreamTokenizer.TT_WORD ? tokens.sval : "";
    }
    return user;
  }

  static String capped(String text) {
    return text.length() <= LONGEST ? text : text.substring(0, LONGEST);
  }
}
