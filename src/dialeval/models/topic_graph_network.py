"""The network of MME-CRS's topic coherence: GRADE's graph branch alone (Huang et al., 2020, 3.2).

    h_i = v_i + W1 (mean of the nearest words, one hop away) + W2 (mean of those two hops away)
    h_i <- ELU( W h_i + [ sum_j A_ij a_ij V h_j ; four heads ] ),   three times
    a_ij = softmax over the neighbours j of i of LeakyReLU( u . V h_i + w . V h_j )
    mean over the nodes -> 512 -> 128 -> 1, and the sigmoid of the last number is the score

Nodes are the keywords of the context and of the response, and two more, for the beginning and the
end, so that no graph is empty. An edge joins a keyword of the context with one of the response, its
weight is 1 / (1 + hops between them in ConceptNet), and A = D^-1/2 (E + I) D^-1/2.

The released code of GRADE differs: it drops a fifth of the edges at random, even when it scores,
multiplies the logits of the attention by A, takes the softmax over the wrong axis, and gives all
nodes the same vector for their surroundings. Here A weighs what is sent and not the logits, where
a softmax would take away again what tells a near word from a far one; nothing is dropped, and
padding is no node.
"""

from __future__ import annotations

import torch

HIDDEN = (512, 128)
SLOPE = 0.2


def normalised(edges: torch.Tensor) -> torch.Tensor:
    """D^-1/2 (E + I) D^-1/2 of (..., nodes, nodes); D sums the rows of E + I."""
    looped = edges + torch.eye(edges.shape[-1], dtype=edges.dtype, device=edges.device)
    scale = looped.sum(dim=-1).rsqrt()
    return scale[..., :, None] * looped * scale[..., None, :]


class GraphAttention(torch.nn.Module):
    """One layer. `units` is split among the heads."""

    def __init__(self, size: int, units: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.own = torch.nn.Linear(size, units)
        self.message = torch.nn.Linear(size, units)
        self.receiver = torch.nn.Parameter(torch.empty(heads, units // heads))
        self.sender = torch.nn.Parameter(torch.empty(heads, units // heads))
        torch.nn.init.xavier_uniform_(self.receiver)
        torch.nn.init.xavier_uniform_(self.sender)

    def forward(self, nodes: torch.Tensor, adjacency: torch.Tensor) -> torch.Tensor:
        """(graphs, nodes, size) and (graphs, nodes, nodes) -> (graphs, nodes, units).

        A weight of 0 in `adjacency` is no edge. Every node must have one, if only to itself.
        """
        sent = self.message(nodes).unflatten(-1, (self.heads, -1))
        receiver = (sent * self.receiver).sum(-1).transpose(1, 2)
        sender = (sent * self.sender).sum(-1).transpose(1, 2)
        both = receiver[..., :, None] + sender[..., None, :]
        logits = torch.nn.functional.leaky_relu(both, SLOPE)
        weights = adjacency[:, None]
        attention = logits.masked_fill(weights == 0, -torch.inf).softmax(dim=-1)
        received = ((attention * weights) @ sent.transpose(1, 2)).transpose(1, 2).flatten(-2)
        return torch.nn.functional.elu(self.own(nodes) + received)


class TopicGraphNetwork(torch.nn.Module):
    """`dimensions` of a word vector, `units` of a layer. Outputs are logits."""

    def __init__(
        self, dimensions: int, units: int, heads: int, layers: int, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.unknown = torch.nn.Parameter(torch.zeros(dimensions))
        self.ends = torch.nn.Parameter(0.1 * torch.randn(2, dimensions))
        self.near = torch.nn.Linear(dimensions, dimensions, bias=False)
        self.beyond = torch.nn.Linear(dimensions, dimensions, bias=False)
        sizes = [dimensions, *[units] * layers]
        self.layers = torch.nn.ModuleList(
            GraphAttention(size, units, heads) for size in sizes[:layers]
        )
        sizes = [sizes[-1], *HIDDEN]
        self.hidden = torch.nn.ModuleList(
            torch.nn.Linear(*pair) for pair in zip(sizes, HIDDEN, strict=False)
        )
        self.out = torch.nn.Linear(HIDDEN[-1], 1)
        self.dropout = torch.nn.Dropout(dropout)

    def forward(self, words: torch.Tensor, edges: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
        """Logits of graphs.

        words  (graphs, keywords, 3, dimensions): of each keyword its vector, the mean of the words
               one hop away, and of those two hops away; NaN where there is none
        edges  (graphs, keywords, keywords): weights, 0 where there is no edge
        real   (graphs, keywords): which keywords are no padding
        """
        nodes = torch.cat([self.ends.expand(len(words), -1, -1), self._nodes(words)], dim=1)
        adjacency = normalised(torch.nn.functional.pad(edges, (2, 0, 2, 0)))
        real = torch.nn.functional.pad(real, (2, 0), value=True).to(nodes.dtype)
        for layer in self.layers:
            nodes = layer(self.dropout(nodes), adjacency)
        mean = (nodes * real[..., None]).sum(dim=1) / real.sum(dim=1, keepdim=True)
        for layer in self.hidden:
            mean = self.dropout(torch.nn.functional.elu(layer(mean)))
        logits: torch.Tensor = self.out(mean).squeeze(-1)
        return logits

    def _nodes(self, words: torch.Tensor) -> torch.Tensor:
        word, near, beyond = words.unbind(dim=2)
        known = torch.where(word.isnan(), self.unknown, word)
        summed: torch.Tensor = (
            known + self.near(near.nan_to_num()) + self.beyond(beyond.nan_to_num())
        )
        return summed
