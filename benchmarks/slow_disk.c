/* A disk that takes FLUSH_US for a flush: loaded into a broker (LD_PRELOAD), whose threads wait for it without using a CPU. */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

static int flushed(void) {
  const char *us = getenv("FLUSH_US");
  long ns = us == NULL ? 0 : atol(us) * 1000;
  struct timespec left = {ns / 1000000000, ns % 1000000000};
  while (nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
  return 0;
}

int fsync(int descriptor) {
  (void)descriptor;
  return flushed();
}

int fdatasync(int descriptor) {
  (void)descriptor;
  return flushed();
}
