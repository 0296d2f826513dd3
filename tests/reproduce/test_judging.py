"""How claims are judged."""

from __future__ import annotations

import pytest

from reproduce.figure import Judgement
from reproduce.judging import below, in_every_case, larger, number

ROWS = [
    {"method": "hilbert", "k": 5, "gcp": 0.1},
    {"method": "hilbert", "k": 10, "gcp": 0.4},
    {"method": "mondrian", "k": 5, "gcp": 0.2},
    {"method": "mondrian", "k": 10, "gcp": 0.3},
    {"method": "topdown", "k": 5, "gcp": 0.05},
    {"method": "topdown", "k": 10, "gcp": None},
]


@pytest.mark.parametrize(
    ("cases", "verdict", "found"),
    [
        ({"k = 5": True, "k = 10": True}, "holds", "so"),
        ({"k = 5": False, "k = 10": False}, "fails", "so"),
        ({"k = 5": True, "k = 10": False}, "depends", "so. Not at k = 10"),
    ],
)
def test_a_claim_holds_in_all_cases_or_fails_in_all_or_depends(
    cases: dict[str, bool], verdict: str, found: str
) -> None:
    judgement = in_every_case(cases, "so")
    assert (judgement.verdict, judgement.found) == (verdict, found)


def test_a_claim_without_a_case_is_no_claim() -> None:
    with pytest.raises(ValueError, match="at least one case"):
        in_every_case({}, "nothing")


def test_lines_are_compared_where_both_were_measured() -> None:
    assert below(ROWS, ["hilbert"], ["mondrian"], x="k", y="gcp") == Judgement(
        "depends", "hilbert 0.100 to 0.400; mondrian 0.200 to 0.300. Not at k = 10"
    )
    assert below(ROWS, ["hilbert"], ["mondrian"], x="k", y="gcp", factor=1.5).verdict == "holds"
    assert below(ROWS, ["hilbert"], ["topdown"], x="k", y="gcp").verdict == "fails"


def test_of_several_lines_the_text_names_those_that_are_not_below() -> None:
    judgement = below(ROWS, ["hilbert"], ["mondrian", "topdown"], x="k", y="gcp", names={"hilbert": "Hilb"})
    assert judgement.found.endswith(". Not for Hilb and mondrian at k = 10. Not for Hilb and topdown at k = 5")


def test_where_nothing_is_lost_nothing_is_judged() -> None:
    nothing = [{"method": method, "k": 2, "gcp": 0.0} for method in ("hilbert", "mondrian")]
    assert below([*nothing, *ROWS[::2]], ["hilbert"], ["mondrian"], x="k", y="gcp").verdict == "holds"


def test_trials_that_do_not_decide_a_case_leave_it_open() -> None:
    rows = [
        {"method": method, "k": 5, "gcp": gcp}
        for method, values in (
            ("hilbert", (0.1, 0.2, 0.3)),
            ("mondrian", (0.2, 0.1, 0.4)),
            ("topdown", (0.5, 0.6, 0.8)),
        )
        for gcp in values
    ]
    assert below(rows, ["hilbert"], ["mondrian"], x="k", y="gcp") == Judgement(
        "depends", "hilbert 0.200; mondrian 0.233. Undecided at k = 5"
    )
    assert below(rows, ["hilbert"], ["topdown"], x="k", y="gcp").verdict == "holds"
    assert below(rows, ["topdown"], ["hilbert"], x="k", y="gcp").verdict == "fails"


def test_trials_decide_by_the_interval_of_their_difference() -> None:
    close = larger([1.0, 2.0, 3.0], [0.9, 2.1, 2.9], ("first", "second"))
    assert close.verdict == "depends"
    assert larger([2.0, 3.1, 4.0], [1.0, 2.0, 3.0], ("first", "second")).verdict == "holds"
    assert larger([1.0, 2.0, 3.0], [2.0, 3.1, 4.0], ("first", "second")).verdict == "fails"
    assert close.found == "first 2.00, second 1.97; difference 0.0333, 95% interval -0.254 to 0.320"


@pytest.mark.parametrize(
    ("value", "text"), [(0.012345, "0.0123"), (1234567.0, "1,234,567"), (0.0, "0"), (12.34, "12.3"), (1e-8, "1.00e-08")]
)
def test_numbers_have_three_digits(value: float, text: str) -> None:
    assert number(value) == text
