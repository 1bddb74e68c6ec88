"""Stories and essays, as in QuALITY."""

from pearl.domains import Domain

DOMAIN = Domain("Stories and essays, as in QuALITY", library="quality", examples="quality")
