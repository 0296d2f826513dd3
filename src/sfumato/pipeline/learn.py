"""Rules learnt from a table: the recoding whose regions meet the policy."""

from __future__ import annotations

from sfumato.kernels.decorator import on_compilation
from sfumato.pipeline.capabilities import check_method_of
from sfumato.pipeline.engine_choice import choose_learning_engine
from sfumato.pipeline.prepare import open_job
from sfumato.policy import EngineSettings, Policy, merge_flags
from sfumato.progress import Progress
from sfumato.releases.recoding import Recoding
from sfumato.releases.rules import check_rules_show_no_more


def fit_recoding(data: object, policy: Policy, progress: Progress) -> Recoding:
    """Learn a recoding with the engine that fits, after every check that a release would go through."""
    check_method_of(learning_policy(policy))  # refuses methods without rules before the table is opened
    check_rules_show_no_more(policy)
    engine, source = choose_learning_engine(data, policy, progress)
    try:
        with on_compilation(progress.compiling):
            job = open_job(data, source, learning_policy(policy), progress)
            scan = engine.read(job)
            table = engine.encode(scan, engine.profile(scan))
            engine.check(table)
            return engine.learn(table)
    finally:
        engine.close()


def learning_policy(policy: Policy) -> Policy:
    """Return what a recoding is learnt under: it shows regions, and is the same whatever engine finds them."""
    return merge_flags(policy, boxes="regions").model_copy(update={"engine": EngineSettings()})
