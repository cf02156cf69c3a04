"""A report as a parser sees it: elements, attributes and text."""

from __future__ import annotations

from collections import Counter
from html.parser import HTMLParser

ELEMENTS = frozenset(
    """
    html head meta title style body a div nav p ol ul li main header h1 h2 h3 h4 section
    table thead tbody tr th td span b i bdi details summary figure svg g rect line circle
    polyline text desc dl dt dd code pre label input select option button output dialog form
    kbd script
    """.split()  # noqa: SIM905
)
ATTRIBUTES = frozenset(
    """
    lang charset http-equiv content name class href id hidden scope title open type placeholder
    autocomplete spellcheck value dir data-v data-s data-l method aria-label aria-labelledby
    aria-describedby role xmlns width height viewbox x y x1 y1 x2 y2 cx cy r points fill
    fill-opacity stroke stroke-width stroke-linejoin stroke-dasharray font-family font-size
    font-weight text-anchor transform pointer-events
    """.split()  # noqa: SIM905
)


class PageReader(HTMLParser):
    """Gathers everything; `problems` are what a report never has."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: Counter[str] = Counter()
        self.attributes: list[tuple[str, str, str]] = []
        self.problems: list[str] = []
        self.open: list[str] = []
        self.pieces: list[str] = []
        self.scripts: list[str] = []
        self.feed(page)
        self.close()

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    def handle_starttag(self, tag, attrs):
        self.elements[tag] += 1
        self.open.append(tag)
        if tag not in ELEMENTS:
            self.problems.append(f"<{tag}>")
        for name, value in attrs:
            self.attributes.append((tag, name, value or ""))
            if name not in ATTRIBUTES:
                self.problems.append(f"<{tag} {name}>")
            if name == "href" and not (value or "").startswith("#"):
                self.problems.append(f"href {value}")

    def handle_endtag(self, tag):
        while self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data):
        if self.open and self.open[-1] in ("script", "style"):
            self.scripts.append(data)
        else:
            self.pieces.append(data)

    def handle_comment(self, data):
        self.problems.append(f"<!--{data}-->")

    def handle_pi(self, data):
        self.problems.append(f"<?{data}>")

    def unknown_decl(self, data):
        self.problems.append(f"<![{data}]>")
