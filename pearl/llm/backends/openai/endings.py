"""Finish reason → outcome of a reply.

Servers and gateways report many more reasons than OpenAI documents. Only reasons documented to mean
completion count as such; an unknown reason is a failure.
"""

from __future__ import annotations

from typing import Literal

Ending = Literal["whole", "tool", "truncated", "filtered", "refused", "repetition", "failed"]

_REASONS: dict[Ending, frozenset[str]] = {
    # OpenAI, Mistral, DeepSeek, vLLM, SGLang, llama.cpp, Ollama, OpenRouter: stop. Anthropic and
    # Bedrock: end_turn, stop_sequence. TGI and watsonx: eos_token. Together: eos. Cohere: complete.
    # AI21: endoftext. Bedrock's Titan: finish, finished. xAI: reason_stop. Qianfan: normal.
    "whole": frozenset(
        {"stop", "end_turn", "stop_sequence", "eos", "eos_token", "complete", "completed",
         "endoftext", "finish", "finished", "reason_stop", "finish_reason_stop", "normal"}
    ),
    # Complete if a tool call was requested, else truncated.
    "tool": frozenset(
        {"tool_calls", "tool_call", "function_call", "tool_use", "reason_tool_calls"}
    ),
    "truncated": frozenset(
        {"length", "max_tokens", "max_output_tokens", "max_completion_tokens", "model_length",
         "max_length", "token_limit", "max_context", "context_length", "context_length_exceeded",
         "context_window_exceeded", "model_context_window_exceeded", "reason_max_len",
         "reason_max_context", "finish_reason_max_tokens"}
    ),
    # Gemini: safety, recitation, blocklist, prohibited_content, spii. Bedrock: content_filtered,
    # guardrail_intervened. Cohere: error_toxic. Zhipu: sensitive.
    "filtered": frozenset(
        {"content_filter", "content_filtered", "safety", "recitation", "blocklist",
         "prohibited_content", "spii", "image_safety", "guardrail_intervened", "error_toxic",
         "sensitive", "finish_reason_safety", "moderation"}
    ),
    "refused": frozenset({"refusal"}),
    "repetition": frozenset({"repetition"}),
}  # fmt: skip

_ENDINGS: dict[str, Ending] = {
    reason: found for found, reasons in _REASONS.items() for reason in reasons
}


def ending(reason: str) -> Ending:
    """Classify a reason, ignoring case.

    Example:
        >>> [ending(reason) for reason in ("stop", "MAX_TOKENS", "SAFETY", "abort", "")]
        ['whole', 'truncated', 'filtered', 'failed', 'failed']
    """
    return _ENDINGS.get(reason.strip().casefold().replace("-", "_"), "failed")
