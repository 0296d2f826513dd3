"""The list of projects: go on with one, or make one from a table of the folder, a file, or invented records."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import quote, unquote

from sfumato.app.background_run import runs_of
from sfumato.app.forms import PostedForm, button, field, hidden, text_input
from sfumato.app.project import Project
from sfumato.app.view import View
from sfumato.errors import SfumatoError, UsageError
from sfumato.policy import Policy
from sfumato.report.html import Markup, element, folded, joined, name

DEMO_TABLE = "sfumato-demo.csv"
DEMO_RECORDS = 5000
UNITS = ("B", "kB", "MB", "GB", "TB")


def projects_body(view: View) -> Markup:
    say = view.say
    projects, found = view.store.projects(), view.store.folder.tables()
    parts: list[object] = [element("h1", say("page.projects"), tabindex="-1")]
    if projects:
        cards = [_project_card(view, project) for project in projects]
        parts += [element("h2", say("page_projects.go_on")), element("div", *cards, class_="cards")]
    rows = [
        element(
            "li",
            view.post(
                "/projects/create",
                hidden("table", quote(table.path)),
                element("span", name(table.path), class_="file"),
                element("span", size_text(view, table.size), class_="quiet"),
                button(
                    say("page_projects.start"),
                    look="small",
                    aria_label=say("page_projects.start_with", table=table.path),
                ),
                class_="row",
            ),
        )
        for table in found.tables
    ]
    listed = (
        element("ul", *rows, class_="tables") if rows else element("p", say("page_projects.no_tables"), class_="quiet")
    )
    parts += [
        element("h2", say("page_projects.new")),
        element("p", say("page_projects.folder"), " ", element("code", str(view.store.folder.root)), class_="quiet"),
        listed,
        _path_form(view),
        "" if found.complete else element("p", say("page_projects.more_tables"), class_="note"),
        _drop_zone(view),
        _demo(view),
    ]
    return joined(parts)


def _project_card(view: View, project: Project) -> Markup:
    say = view.say
    try:
        state, runs = project.state, runs_of(project)
    except SfumatoError as error:
        return element(
            "article",
            element("h3", name(project.name)),
            element("p", view.message(str(error)), class_="alarm"),
            class_="card",
        )
    trials = sum(1 for run in runs if run.kind == "trial" and run.state == "done")
    facts = [say("page_projects.trials", count=trials)]
    if "published" in state.notes:
        facts.append(say("page_projects.published"))
    if any(run.state == "running" for run in runs[:10]):
        facts.append(say("page_projects.running"))
    facts.append(say("page_projects.changed", time=view.time(state.steps[-1].time)))
    return element(
        "article",
        element("h3", element("a", name(state.title), href=f"/p/{project.name}/{_where(project)}")),
        element("p", name(state.table), class_="quiet"),
        element("p", " \N{MIDDLE DOT} ".join(facts), class_="quiet"),
        class_="card",
    )


def _where(project: Project) -> str:
    """The screen to go on with."""
    notes = project.state.notes
    if "published" in notes:
        return "publish"
    return "columns" if "examined" in notes else "open"


def _path_form(view: View) -> Markup:
    """A path that is not listed, such as a table of a database."""
    say = view.say
    return folded(
        say("page_projects.other_path"),
        view.post(
            "/projects/create",
            field(say("page_projects.path"), text_input("path", "", id="path", placeholder="2026/patients.csv")),
            button(say("page_projects.start"), look="small"),
            class_="row",
        ),
    )


def _drop_zone(view: View) -> Markup:
    say = view.say
    return element(
        "div",
        element("p", element("strong", say("page_projects.drop"))),
        element(
            "label",
            element("span", say("page_projects.choose"), class_="button"),
            element("input", type="file", id="upload", class_="unseen", data_upload="/upload"),
        ),
        element("p", say("page_projects.copy"), class_="quiet"),
        element("progress", hidden=True, id="upload-progress", aria_label=say("page_projects.uploading")),
        class_="drop",
        data_drop=True,
    )


def _demo(view: View) -> Markup:
    say = view.say
    return element(
        "div",
        element("p", say("page_projects.demo", count=DEMO_RECORDS)),
        view.post("/projects/demo", button(say("page_projects.demo_start"))),
        class_="demo",
    )


def size_text(view: View, size: float) -> str:
    """A number of bytes as people say it."""
    unit = 0
    while size >= 1000 and unit < len(UNITS) - 1:
        size, unit = size / 1000, unit + 1
    return f"{view.say.number(size, '.0f' if size >= 100 or unit == 0 else '.1f')} {UNITS[unit]}"


def create(view: View, form: PostedForm) -> str:
    """Make a project for a table of the folder. A policy that lies beside it is where it starts."""
    table = unquote(form.text("table")) or form.text("path").strip()
    path = view.store.folder.path(table)
    beside = path.with_name(f"{path.name.partition('.')[0]}.policy.toml")
    policy = (
        Policy.load(beside) if beside.is_file() and beside.resolve().is_relative_to(view.store.folder.root) else None
    )
    project = view.store.create(table, policy)
    return f"/p/{project.name}/open"


def demo(view: View, _: PostedForm) -> str:
    """Make a table of invented persons with its policy, and a project for it."""
    from sfumato.synthetic import generate

    target = view.store.folder.root / DEMO_TABLE
    if not target.exists():
        generate("hospital", DEMO_RECORDS, target)
    policy = target.with_name(f"{DEMO_TABLE.partition('.')[0]}.policy.toml")
    if not policy.is_file():
        raise UsageError(f"the policy of {DEMO_TABLE} is missing in the folder. Remove the table and try again.")
    project = view.store.create(DEMO_TABLE, Policy.load(policy))
    return f"/p/{project.name}/open"


ACTIONS: dict[str, Callable[[View, PostedForm], str]] = {"create": create, "demo": demo}
