"""Find quotes in replies (`finding`) and verify them by passages of the document (`verifying`), in normal form."""

from pearl.documents.evidence.collecting import Evidence as Evidence
from pearl.documents.evidence.collecting import StepReply as StepReply
from pearl.documents.evidence.collecting import Unverified as Unverified
from pearl.documents.evidence.collecting import collect as collect
from pearl.documents.evidence.collecting import placed as placed
from pearl.documents.evidence.finding import find_quotes as find_quotes
from pearl.documents.evidence.finding import quoted_line as quoted_line
from pearl.documents.evidence.normal import normalise as normalise
from pearl.documents.evidence.verifying import Doubt as Doubt
from pearl.documents.evidence.verifying import Match as Match
from pearl.documents.evidence.verifying import Quote as Quote
from pearl.documents.evidence.verifying import Verifier as Verifier
from pearl.documents.evidence.wording import DOUBTS as DOUBTS
from pearl.documents.evidence.wording import full_place as full_place
from pearl.documents.evidence.wording import short_place as short_place
from pearl.documents.evidence.wording import with_omissions as with_omissions
