"""Reports every attempt of a call when it has ended, to whoever listens to the call."""

from __future__ import annotations

import asyncio
import time
from functools import partial

from pearl.errors import ModelError
from pearl.llm import Completion, Request, Usage
from pearl.llm.middleware.wrapper import Wrapper
from pearl.llm.progress import CallAttempt, is_heard, n_failed_attempts, report


class AttemptReporter(Wrapper):
    """Reports what was sent over the wire and what came back.

    Put it next to the model: what was kept, refused by a limit, or waits, is no attempt.
    """

    async def complete(self, request: Request) -> Completion:
        """Send one request."""
        if not is_heard():
            return await self._model.complete(request)
        ended = partial(CallAttempt, self.name, self.identity, request, n_failed_attempts.get())
        began = time.monotonic()
        try:
            completion = await self._model.complete(request)
        except ModelError as error:
            if error.is_sent or error.kind == "transport":
                usage = error.usage or Usage()
                took_s = time.monotonic() - began
                report(ended(took_s, error=error.kind, reply=error.reply, usage=usage))
            raise
        except asyncio.CancelledError:
            report(ended(time.monotonic() - began, error="cancelled"))
            raise
        except Exception:
            report(ended(time.monotonic() - began, error="internal"))
            raise
        took_s = time.monotonic() - began
        report(ended(took_s, completion, reply=completion.text, usage=completion.usage))
        return completion
