"""Medical transcripts, reports and questions."""

from pearl.domains import Domain

DOMAIN = Domain("Medical transcripts, reports and questions", library="medical", examples="medical")
