"""Every closed form on which an exact sensitivity or distance rests, with its source and the test that checks it.

Notation: an axis has ordered cells 0..n−1; cell y is joined to [first(y), y), first nondecreasing (an *interval* graph);
a *star* is a cell outside the order. Rows A over P positions; column P ("nowhere") is zero; D(a, b) is the weighted L1
distance of columns a and b, and N(a) = D(a, P). "Derived" means proved in docs/sensitivity.md and not in a paper.
"""

from __future__ import annotations

from dataclasses import dataclass

HE = "He, Machanavajjhala, Ding 2014"
DERIVED = "derived"
_DENSE = "tests/test_sensitivity.py::test_sensitivity_equals_the_largest_move_over_the_dense_edges"
_ROWS = "tests/test_sensitivity.py::test_rows_move_as_far_as_enumeration_says"
_AXES = "tests/test_graphs.py::test_axes_equal_their_statement"
_PLACES = "tests/test_places.py"
_GRAPHS = "tests/test_graphs.py::test_edges_joined_and_distance_equal_the_dense_graph"
_TRUTH = "tests/test_rule_r.py::test_costs_are_never_below_the_truth"
_PEOPLE = "tests/test_people.py::test_sensitivities_are_those_of_enumeration"


@dataclass(frozen=True)
class Claim:
    """One closed form.

    Attributes:
        key: module-like name, for tables and reports.
        text: what holds, for which graphs and rows.
        source: the paper, or "derived".
        checked_by: "file::test", the test that compares it with enumeration.

    >>> next(claim.source for claim in CLAIMS if claim.key == "rows/prefixes")
    'He, Machanavajjhala, Ding 2014, section 7.1'
    """

    key: str
    text: str
    source: str
    checked_by: str


CLAIMS: tuple[Claim, ...] = (
    Claim(
        "edges/one-record",
        "Without constraints neighbours differ in one record that moves along one edge, so the sensitivity of linear "
        "answers W is the largest ‖W(e_x − e_y)‖₁ over the edges x – y.",
        f"{HE}, definition 4.1 and section 5",
        "tests/test_sensitivity.py::test_sensitivity_equals_the_largest_change_over_neighbouring_databases",
    ),
    Claim(
        "edges/groups",
        "Rows A repeated in every group: a record that changes group moves them by N(a) + N(b) ≤ 2·max N, and an edge of "
        "the grouping attribute alone at the position of largest norm attains it. Holds for edges that move one "
        "attribute and for edges that move several, each along its own graph.",
        DERIVED,
        "tests/test_sensitivity.py::test_strategies_repeated_in_every_group_move_as_far_as_enumeration_says",
    ),
    Claim(
        "edges/filters",
        "A record that an edge of a filtering attribute takes in or out moves the rows by N(a) ≤ max N, attained at the "
        "position of largest norm.",
        DERIVED,
        "tests/test_sensitivity.py::test_strategies_repeated_in_every_group_move_as_far_as_enumeration_says",
    ),
    Claim(
        "edges/flat",
        "A graph listed over whole cells is projected on the attributes of the question and gone through edge by edge.",
        "definition",
        _DENSE,
    ),
    Claim(
        "rows/cells",
        "One row for every position: any two different positions are 2 apart, any position and nowhere 1.",
        f"{HE}, section 5",
        _ROWS,
    ),
    Claim(
        "rows/prefixes",
        "All prefix sums: positions a < b are b − a apart, so on an interval graph the widest edge decides (θ for a "
        "distance threshold θ, |T| − 1 for the complete graph).",
        f"{HE}, section 7.1",
        _ROWS,
    ),
    Claim(
        "rows/all-ranges",
        "All ranges of P positions: positions d apart differ in d·(P + 1 − d) ranges, which rises up to (P + 1)/2; on an "
        "interval graph every gap up to the widest occurs. The norm of position a is (a + 1)(P − a).",
        DERIVED,
        _ROWS,
    ),
    Claim(
        "rows/some-ranges",
        "Listed ranges: D(a, b) = #(hold a) + #(hold b) − 2·#(hold both), counted in a corner table.",
        DERIVED,
        _ROWS,
    ),
    Claim(
        "rows/one-row",
        "One row v on an interval graph: the largest |v[y] − v[x]| is found from the largest and the least value of every "
        "window [first(y), y].",
        DERIVED,
        "tests/test_sensitivity.py::test_one_row_on_every_small_interval_graph",
    ),
    Claim(
        "rows/still-rows",
        "A row that is constant on the ordered cells is moved by no edge among them and may be left out there.",
        DERIVED,
        _ROWS,
    ),
    Claim(
        "rows/at-bounds",
        "D is at most the sum of the layers' own largest moves; where an edge whose upper end starts a row attains that "
        "sum, it is the maximum.",
        DERIVED,
        _ROWS,
    ),
    Claim(
        "rows/nested",
        "Prefix sums and nested runs on an interval graph: positions x < y that part at level l are N(x) + N(y) − "
        "2·(weight of the levels above l) + (prefixes between them) apart; the best x for every y and level lies in "
        "[first(y), start of y's run).",
        DERIVED,
        "tests/test_sensitivity.py::test_trees_are_priced_without_going_through_the_edges",
    ),
    Claim(
        "rows/star",
        "A star that is joined to every cell is c away from cell 0 under all prefix sums if its own position is c, and 2 "
        "away under one row for every position; otherwise its partners are gone through.",
        DERIVED,
        _ROWS,
    ),
    Claim(
        "rows/norm",
        "The largest column norm: the weight for one row a position, all prefixes at position 0, the middle position for "
        "all ranges; otherwise every position is looked at.",
        DERIVED,
        _ROWS,
    ),
    Claim(
        "rows/mean",
        "A mean is a sum and a plain count: the sensitivity is the largest |Δ sum| + |Δ count|, each in its own unit.",
        "definition",
        "tests/test_sensitivity.py::test_a_mean_is_a_sum_and_a_plain_count_in_their_own_units",
    ),
    Claim(
        "quotient/positions",
        "Bins in order turn an interval graph into one on the positions: position p reaches down to the position of the "
        "first kept cell at or after first(head of p).",
        DERIVED,
        "tests/test_graphs.py::test_quotients_join_the_positions_of_joined_cells",
    ),
    Claim(
        "quotient/outside",
        "All cells that a filter leaves out are one star, joined to the positions of the cells that are joined to any of "
        "them; on an interval graph that is counted over [first(c), last(c)].",
        DERIVED,
        "tests/test_graphs.py::test_quotients_join_the_positions_of_joined_cells",
    ),
    Claim(
        "quotient/label-change",
        "On an interval graph an edge between different groups exists only if one between consecutive grouped cells "
        "does, and an edge between a grouped and an ungrouped cell only if one between neighbouring cells does.",
        DERIVED,
        "tests/test_graphs.py::test_label_change_is_the_largest_over_all_edges",
    ),
    Claim(
        "axes/window-distance",
        "Cells d apart in a window graph of reach r are ⌈d/r⌉ hops apart.",
        f"{HE}, section 3; exact on cell offsets only",
        _AXES,
    ),
    Claim(
        "axes/interval-distance",
        "On an interval graph stepping from y to first(y) is never worse than any other step down.",
        DERIVED,
        _AXES,
    ),
    Claim(
        "axes/star-distance",
        "A star that is joined to every cell makes any two cells at most two hops apart.",
        DERIVED,
        _AXES,
    ),
    Claim(
        "graphs/sum-of-hops",
        "Where an edge moves one attribute, hops add over the attributes, and components multiply.",
        f"{HE}, section 3",
        _GRAPHS,
    ),
    Claim(
        "graphs/largest-of-hops",
        "Where an edge moves any attributes, each along its own graph, the hops are the largest over the attributes.",
        DERIVED,
        _GRAPHS,
    ),
    Claim(
        "reach/integer",
        "Cells of s whole numbers hold values at most θ apart iff their offset is at most ⌊(θ − 1)/s⌋ + 1; none for θ < 1.",
        DERIVED,
        _GRAPHS,
    ),
    Claim(
        "reach/numeric",
        "Half-open cells of width w hold values at most θ apart iff their offset is at most ⌈θ/w⌉; none for θ = 0.",
        DERIVED,
        _GRAPHS,
    ),
    Claim(
        "reach/categorical",
        "Values of an ordered list are as far apart as their places: offsets up to ⌊θ⌋.",
        "definition",
        _GRAPHS,
    ),
    Claim(
        "reach/discrete",
        "Under the discrete metric any two different values are 1 apart: all are joined for θ ≥ 1, none below.",
        "definition",
        _GRAPHS,
    ),
    Claim(
        "reach/plane",
        "Half-open cells of a map d rows and k columns apart hold places at most θ apart iff the distance made of "
        "max(d − 1, 0) heights and max(k − 1, 0) widths is below θ (L1 or L2, exact rationals); none for θ = 0.",
        DERIVED,
        f"{_PLACES}::test_near_cells_hops_and_components_equal_value_pairs",
    ),
    Claim(
        "reach/sphere",
        "The least central angle between two boxes of latitude and longitude grows with the gap in longitude up to 180° and "
        "is attained with one place on a northern or southern side; with one latitude fixed its cosine is a sinusoid.",
        DERIVED,
        f"{_PLACES}::test_great_circles_join_what_sampled_places_show",
    ),
    Claim(
        "axes/map-distance",
        "If nearer columns of the same row distance are joined too, a shortest path need not leave the columns between its "
        "ends; if that holds for rows as well, hops depend on the offset alone.",
        DERIVED,
        f"{_PLACES}::test_near_cells_hops_and_components_equal_value_pairs",
    ),
    Claim(
        "graphs/ball",
        "Records whose least weighted distance over several attributes is at most θ: an edge cut down to some attributes is "
        "an edge, so components multiply and the largest move of a question with one axis is found on single attributes.",
        DERIVED,
        f"{_PLACES}::test_balls_equal_value_pairs_and_breadth_first_search",
    ),
    Claim(
        "graphs/ball-distance",
        "Hops of a common distance are the least number of joined offsets that add up, star cells costing nothing.",
        DERIVED,
        f"{_PLACES}::test_balls_equal_value_pairs_and_breadth_first_search",
    ),
    Claim(
        "rows/map-signs",
        "On a map, max Σ_r |v_r[x] − v_r[y]| over the edges is the largest over signs s of s·v at the best partner of x less "
        "s·v at x; for squares that holds for a single row.",
        DERIVED,
        "tests/test_lattices.py::test_rows_move_as_far_as_enumeration_says",
    ),
    Claim(
        "quotient/map",
        "Positions of a map, and labels that change, are found from the largest label among the partners of every cell.",
        DERIVED,
        "tests/test_lattices.py::test_labels_change_and_quotients_as_enumeration_says",
    ),
    Claim(
        "sums/by-label",
        "Sums of coordinates by label move by ‖x − y‖₁ inside a label and by ‖x‖₁ + ‖y‖₁ across two, however near x and y.",
        DERIVED,
        "tests/test_lattices.py::test_sums_by_label_move_as_far_as_enumeration_says",
    ),
    Claim(
        "hops/maps",
        "Between maps whose reach is the same for all rows, the farthest ends of one graph's edges in another graph are those "
        "of its longest offset at some row distance.",
        DERIVED,
        "tests/test_lattices.py::test_hops_between_maps_are_those_of_enumeration_or_a_bound",
    ),
    Claim(
        "kmeans/round",
        "Sizes (weight w) and sums of residuals v (weight u) of clusters move by u‖v(x) − v(y)‖ where the label stays and by "
        "2w + u(‖v(x)‖ + ‖v(y)‖) where it changes; the two longest residuals of different labels, and the box around each "
        "label, bound that for every pair of cells.",
        DERIVED,
        "tests/test_kmeans_rounds.py::test_the_price_is_never_below_the_largest_move",
    ),
    Claim(
        "kmeans/blocks",
        "Where clusters are unions of components, sizes do not change along any edge, and Σ (2x − low − high) over the boxes "
        "of components moves by at most twice their longest sides for any pair of cells.",
        DERIVED,
        "tests/test_kmeans_rounds.py::test_blocks_are_the_components_and_no_pair_moves_sums_further",
    ),
    Claim(
        "tables/together",
        "Tables over sets S of attributes with weights w_S move by 2·Σ w_S over the S that hold the attribute, along an edge "
        "that moves one attribute to another position, and by 2·Σ w_S over all S that an edge of several attributes changes: "
        "2·C(m−1, k−1) and 2·C(m, k) for all tables of k of m attributes.",
        DERIVED,
        "tests/test_marginals_strategy.py::test_golden_costs_of_all_tables_of_k_attributes",
    ),
    Claim(
        "rows/joint",
        "A product ⊗ B_j moves by ‖B_j(e_x − e_y)‖ · Π over the others of ‖B_i e_i‖ along an edge of attribute j, "
        "and its squared move between any cells is Π n(x) + Π n(y) − 2·Π G[x, y].",
        DERIVED,
        "tests/test_kronecker.py::test_price_is_exact",
    ),
    Claim(
        "stack/disjoint-filters",
        "Releases that filter an attribute which no edge changes to different values never meet on an edge.",
        DERIVED,
        "tests/test_composition.py::test_releases_about_different_people_do_not_add_up",
    ),
    Claim(
        "people/rows",
        "A person's m kept rows all move, each along an edge: m times the largest move of one row, m² times for squares. Exact "
        "if the number of a person's rows is public: all m can move along one edge. If it is secret, m > 1 and presence is "
        "public, one row always stays, and the price is at most m/(m − 1) times the truth (its square for squares).",
        DERIVED,
        _PEOPLE,
    ),
    Claim(
        "people/displaced",
        "Where rows are kept without a key, or their number is secret, a raw row can take the place of a kept one that no edge "
        "joins to it, with a weight of its own: any two cells are joined, and public weights that differ change with the row. "
        "Exact: with 2m raw rows all m kept ones are replaced.",
        DERIVED,
        "tests/test_counterexamples_people.py::test_a_row_that_appears_displaces_another_that_no_edge_joins_to_it",
    ),
    Claim(
        "people/presence",
        "A person who may be absent moves rows by the whole columns of what is kept of her: a cell and nothing are joined, "
        "N(x) apart, and no total is public. Exact, for every declaration of rows and weights.",
        DERIVED,
        "tests/test_people.py::test_prices_of_one_person_follow_from_those_of_one_row",
    ),
    Claim(
        "people/weights",
        "Weights of at most W steps multiply moves by W, squares by W². A change from weight w at x to w' < w at y moves by "
        "w'·D(x, y) + (w − w')·N(x) at most, so weights that change join a cell and nothing. Exact if weights keep still, if "
        "they may become 0, or if presence is secret; else a bound. Outputs attached to records see no weights and add up.",
        DERIVED,
        _PEOPLE,
    ),
    Claim(
        "people/exempt",
        "Rows in exempt cells never change if no edge changes the attribute that marks them and rows are kept by a key that no "
        "value changes, and if nobody who may be absent has rows of both kinds; so questions that see no other rows are free.",
        DERIVED,
        "tests/test_people.py::test_questions_about_the_exempt_alone_are_free_and_all_others_are_priced",
    ),
    Claim(
        "counts/unbroken",
        "If no edge joins two classes of the known counts, every cost is that without them.",
        DERIVED,
        "tests/test_constraint_goldens.py::test_totals_of_the_graphs_own_components_change_nothing",
    ),
    Claim(
        "counts/rank",
        "Full column rank of [1; φ] modulo a prime proves that n and the known counts determine all class sizes.",
        DERIVED,
        _TRUTH,
    ),
    Claim(
        "rule-r/closed",
        "With class sizes determined, neighbours differ by one record along an edge inside a class, or by a "
        "simple cycle of classes that costs at most the sum of the min(n, #classes) largest diam(C).",
        DERIVED,
        "tests/test_rule_r.py::test_closed_forms_of_histogram_and_cumulative_histogram",
    ),
    Claim(
        "rule-r/sharp",
        "A cycle also costs at most the sum over its arcs of the largest move between the two classes, one arc (the "
        "dearest choice) on edges; the heaviest cycle through every set of classes by Held and Karp.",
        DERIVED,
        _TRUTH,
    ),
    Claim(
        "rule-r/many-cells",
        "Hulls of positions inside groups, and the two largest norms of different groups, bound diam(C).",
        DERIVED,
        "tests/test_rule_r.py::test_bounds_for_large_domains_hold_on_small_ones",
    ),
    Claim(
        "rule-r/squares",
        "The squared norm of a cycle is at most Σ g(C, C'), g the largest inner product of moves in two classes.",
        DERIVED,
        "tests/test_counterexamples.py::test_gaussian_losses_of_a_histogram_add_squares_not_diameters",
    ),
    Claim(
        "rule-r/stack",
        "For several releases the smaller of diameters and arcs counts, one by one, on every set of classes.",
        DERIVED,
        "tests/test_rule_r.py::test_sequences_are_never_below_the_truth",
    ),
    Claim(
        "rule-r/by-record",
        "Outputs attached to records may not use diam(C): every arc counts with its largest move.",
        DERIVED,
        "tests/test_composition.py::test_outputs_attached_to_records_never_hide_in_a_class",
    ),
    Claim(
        "bundle/shape",
        "If one direction u of class sizes is free, irreducible changes are a loop, a simple cycle or an acyclic "
        "bundle of net effect ±u, which splits into ½Σ|u_C| paths.",
        DERIVED,
        "tests/test_steinitz.py::test_changes_are_a_loop_a_simple_cycle_or_an_acyclic_bundle",
    ),
    Claim(
        "bundle/cost",
        "A bundle costs at most V + W: the values of u lost and gained, and the records that pass through classes "
        "in Smith's order; exactly ‖A·u‖ where classes hold one value.",
        DERIVED,
        "tests/test_steinitz.py::test_chain_of_pair_counts_costs_its_length",
    ),
    Claim(
        "steinitz/length",
        "An irreducible set of changes has at most (2d + 1)^d records, d = rank − 1.",
        "Steinitz 1913; Grinberg, Sevastyanov 1980",
        "tests/test_steinitz.py::test_two_dimensions_need_four_records_where_steinitz_says_25",
    ),
    Claim(
        "edges-reading",
        "If all changes run along edges: cycles of classes with edges on all arcs (E1); where no edge raises or lowers "
        "two known counts, cycles of the policy graph (E2).",
        f"{HE}, section 8; E1 derived",
        "tests/test_constraint_goldens.py::test_ours_in_the_edges_reading",
    ),
    Claim(
        "free/known",
        "A prefix row that is constant on every class is free if class sizes are determined, or if one direction u "
        "is free and Σ u_C over the classes it holds is 0 in every group.",
        DERIVED,
        "tests/test_rule_r.py::test_plans_lose_no_more_than_they_charge",
    ),
)
