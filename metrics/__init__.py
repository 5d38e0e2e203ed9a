"""
Kafka's quotas in three rooms; importing one imports no other that it does not need.

* `catalog`: the metric families that quotascope shows, with their names, labels and units
* `kafka`: Kafka's vocabulary: quota types, entities and rules, releases, request types, names of users and MBeans, and
  a controller's checks
* `engine`: Kafka's classes that measure and enforce quotas, for your own simulations and tests; its documentation
  begins with an example

`errors` has the root of the errors of all rooms, `QuotascopeError`.
"""
