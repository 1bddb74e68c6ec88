"""Documents of any kind."""

from pearl.domains import Domain

DOMAIN = Domain("Documents of any kind", library="seed", examples="generic")
