"""The addresses of the page and what answers them. Every answer is made on the server; a change ends in a redirect."""

from __future__ import annotations

import asyncio
import json
import os
import re
import secrets
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Protocol
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from sfumato.app.access import POLICY_OF_PAGES, SIGN, SIGN_HEADER, Access, Gate
from sfumato.app.adoption import adopt_examination
from sfumato.app.background_run import run_numbered, runs_of
from sfumato.app.data_folder import is_table_name
from sfumato.app.examined_values import remove_stale_values
from sfumato.app.forms import MOST_BYTES, PostedForm
from sfumato.app.frame import error_page, project_page, projects_page
from sfumato.app.project import LockedProjectError, OutdatedPageError, Project, ProjectStore
from sfumato.app.publication import adopt_publication, is_publishing
from sfumato.app.run_status import run_status
from sfumato.app.screens import SCREENS
from sfumato.app.screens.projects import ACTIONS
from sfumato.app.style import style_sheet
from sfumato.app.view import ProjectView, Screen, View
from sfumato.errors import InputError, OutputError, SfumatoError
from sfumato.texts import LANGUAGES, texts_in

LARGEST_UPLOAD = 200 * 1000 * 1000  # bytes
PAUSE = 0.4  # seconds between two looks at the runs
SILENCE = 15.0  # seconds after which a stream shows that it is alive
LANGUAGE, THEME = "sfumato-language", "sfumato-theme"
THEMES = ("auto", "light", "dark")
STATIC = Path(__file__).parent / "static"
SERVED = {
    ".html": "text/html; charset=utf-8",
    ".svg": "image/svg+xml",
    ".toml": "text/plain; charset=utf-8",
    ".json": "application/json",
}
OWN_FILES = {"script.js": "text/javascript", "icon.svg": "image/svg+xml"}
FILE_NAME = re.compile(r"[^/\\\0]{1,200}")


class Clock(Protocol):
    """Something that wants to know when a request comes."""

    def now(self) -> None: ...


class Page:
    """The answers of one server."""

    def __init__(self, store: ProjectStore, access: Access, seen: Clock) -> None:
        self._store = store
        self._access = access
        self._seen = seen

    # ---- looking ----

    def projects(self, request: Request) -> Response:
        self._seen.now()
        return _html(projects_page(self._view(request)))

    def screen(self, request: Request) -> Response:
        self._seen.now()
        view, screen = self._project_view(request)
        return self._shown(view, screen)

    def _shown(self, view: ProjectView, screen: Screen, status: int = 200) -> Response:
        try:
            self._adopt(view.project)
        except SfumatoError as error:
            view.alarm = view.alarm or view.message(str(error))
        return _html(project_page(view, screen), status)

    @staticmethod
    def _adopt(project: Project) -> None:
        """Take over what happened beside the page: a release that stands, an edited policy, an examination."""
        with project.exclusively():
            adopt_publication(project)
            if not is_publishing(project):
                project.adopt_edits()
                adopt_examination(project)
            remove_stale_values(project)

    def first_screen(self, request: Request) -> Response:
        name = request.path_params["project"]
        return RedirectResponse(f"/p/{quote(name)}/{SCREENS[0].key}", 303)

    def policy(self, request: Request) -> Response:
        project = self._store.project(request.path_params["project"])
        headers = {"content-disposition": 'attachment; filename="policy.toml"'}
        return PlainTextResponse(project.policy_text, headers=headers)

    def file(self, request: Request) -> Response:
        """A file of a run or of a release. Pages of reports are shown apart from everything of this server."""
        project = self._store.project(request.path_params["project"])
        area, rest = request.path_params["area"], request.path_params["path"]
        root = project.directory / area
        path = Path(os.path.realpath(root / rest))
        if area not in ("runs", "releases", "private") or not path.is_relative_to(root.resolve()) or not path.is_file():
            raise HTTPException(404)
        kind = SERVED.get(path.suffix)
        if kind is None or "download" in request.query_params:
            return FileResponse(path, filename=path.name, content_disposition_type="attachment")
        return FileResponse(path, media_type=kind, headers={"content-security-policy": POLICY_OF_PAGES})

    def static(self, request: Request) -> Response:
        if request.path_params["name"] == "style.css":
            return Response(style_sheet(), media_type="text/css")
        kind = OWN_FILES.get(request.path_params["name"])
        if kind is None:
            raise HTTPException(404)
        return Response((STATIC / request.path_params["name"]).read_bytes(), media_type=kind)

    async def events(self, request: Request) -> Response:
        """Tell how the runs of a project go on, for as long as the tab is open."""
        view, _ = await run_in_threadpool(self._project_view, request)
        return StreamingResponse(_progress_events(request, view), media_type="text/event-stream")

    # ---- changing ----

    async def act(self, request: Request) -> Response:
        """A change on a screen of a project."""
        self._seen.now()
        form = await self._form(request)
        return await run_in_threadpool(self._acted, request, form)

    def _acted(self, request: Request, form: PostedForm) -> Response:
        view, screen = self._project_view(request)
        action = screen.actions.get(request.path_params["action"])
        if action is None:
            raise HTTPException(404)
        return self._changed(view, screen, lambda: action(view, form))

    async def step(self, request: Request) -> Response:
        """Undo or redo."""
        self._seen.now()
        form = await self._form(request)

        def move() -> Response:
            view, screen = self._project_view(request)
            moves = {"undo": view.project.undo, "redo": view.project.redo}
            move = moves[request.path_params["way"]]
            return self._changed(view, screen, lambda: move(form.whole("version") or 0))

        return await run_in_threadpool(move)

    async def stop(self, request: Request) -> Response:
        """Ask a run to stop or, if it was asked before, end it at once."""
        self._seen.now()
        form = await self._form(request)

        def stopped() -> Response:
            view, screen = self._project_view(request)
            run = run_numbered(view.project, request.path_params["run"])
            if form.text("end"):
                run.end()
            else:
                run.stop()
            return RedirectResponse(view.address(screen.key), 303)

        return await run_in_threadpool(stopped)

    def _changed(self, view: ProjectView, screen: Screen, change: Callable[[], str | None]) -> Response:
        project = view.project
        try:
            with project.exclusively():  # what an action has looked at stays so until it is done
                adopt_publication(project)
                if is_publishing(project):
                    view.alarm = view.say("page.publishing")
                    return self._shown(self._fresh(view), screen, 423)
                target = change()
        except OutdatedPageError:
            view.alarm = view.say("page.outdated")
            return self._shown(self._fresh(view), screen, 409)
        except LockedProjectError:
            view.alarm = view.say("page.locked")
            return self._shown(self._fresh(view), screen, 423)
        except SfumatoError as error:
            view.alarm = view.message(str(error))
            return self._shown(self._fresh(view), screen, 422)
        return RedirectResponse(target or view.address(screen.key), 303)

    @staticmethod
    def _fresh(view: ProjectView) -> ProjectView:
        """The same view of what is there by now."""
        return ProjectView(
            view.store,
            view.say,
            view.theme,
            view.sign,
            view.path,
            view.query,
            view.many,
            view.alarm,
            project=view.project,
            screen=view.screen,
        )

    async def create(self, request: Request) -> Response:
        self._seen.now()
        form = await self._form(request)

        def made() -> Response:
            view = self._view(request)
            try:
                return RedirectResponse(ACTIONS[request.path_params["action"]](view, form), 303)
            except SfumatoError as error:
                view.alarm = view.message(str(error))
                return _html(projects_page(view), 422)

        return await run_in_threadpool(made)

    async def upload(self, request: Request) -> Response:
        """Take a private copy of a table. The body is the file; the answer is the address of the project."""
        self._seen.now()
        if not self._access.is_sign(request.headers.get(SIGN_HEADER)):
            return PlainTextResponse("the sign of the page is missing\n", 403)
        say = self._view(request).say
        name = request.query_params.get("name", "")
        if not FILE_NAME.fullmatch(name) or name.startswith(".") or not is_table_name(name):
            return PlainTextResponse(say("page.upload.not_a_table"), 415)
        if int(request.headers.get("content-length", "0") or 0) > LARGEST_UPLOAD:
            return PlainTextResponse(say("page.upload.too_large"), 413)
        copy = self._store.folder.root / f".sfumato-upload-{secrets.token_hex(8)}"
        try:
            if not await _received(request, copy):
                return PlainTextResponse(say("page.upload.too_large"), 413)
            project = await run_in_threadpool(self._store.create_with_copy, name, copy)
        except ClientDisconnect:
            return PlainTextResponse("the file did not come to its end\n", 400)
        except OutputError as error:
            return PlainTextResponse(str(error), 422)
        finally:
            copy.unlink(missing_ok=True)
        return PlainTextResponse(f"/p/{project.name}/{SCREENS[0].key}", 201)

    async def settings(self, request: Request) -> Response:
        """Language and theme, which are of the browser and no part of any project."""
        form = await self._form(request)
        back = form.text("back")
        answer = RedirectResponse(back if back.startswith("/") and not back.startswith("//") else "/", 303)
        for name, field, allowed in ((LANGUAGE, "language", LANGUAGES), (THEME, "theme", THEMES)):
            if form.text(field) in allowed:
                answer.set_cookie(name, form.text(field), max_age=31_536_000, httponly=True, samesite="strict")
        return answer

    async def _form(self, request: Request) -> PostedForm:
        """The fields of a form that one of our own pages made."""
        body = b""
        async for part in request.stream():
            body += part
            if len(body) > MOST_BYTES:
                raise HTTPException(413)
        form = PostedForm(body)
        if not self._access.is_sign(form.text(SIGN) or request.headers.get(SIGN_HEADER)):
            raise HTTPException(403, "the sign of the page is missing")
        return form

    def _view(self, request: Request) -> View:
        language = request.cookies.get(LANGUAGE) or _preferred(request.headers.get("accept-language", ""))
        theme = request.cookies.get(THEME, "auto")
        return View(
            self._store,
            texts_in(language if language in LANGUAGES else "en"),
            theme if theme in THEMES else "auto",
            self._access.sign,
            request.url.path,
            dict(request.query_params),
            {key: request.query_params.getlist(key) for key in request.query_params},
        )

    def _project_view(self, request: Request) -> tuple[ProjectView, Screen]:
        view = self._view(request)
        project: Project = self._store.project(request.path_params["project"])
        key = request.path_params.get("screen", SCREENS[0].key)
        screen = next((screen for screen in SCREENS if screen.key == key), None)
        if screen is None:
            raise HTTPException(404)
        return ProjectView(**view.__dict__, project=project, screen=screen.key), screen


def make_application(store: ProjectStore, access: Access, seen: Clock) -> Starlette:
    """The application of a folder, behind its gate."""
    page = Page(store, access, seen)
    routes = [
        Route("/", page.projects),
        Route("/projects/{action}", page.create, methods=["POST"]),
        Route("/upload", page.upload, methods=["POST"]),
        Route("/settings", page.settings, methods=["POST"]),
        Route("/static/{name}", page.static),
        Route("/p/{project}", page.first_screen),
        Route("/p/{project}/policy.toml", page.policy),
        Route("/p/{project}/events", page.events),
        Route("/p/{project}/files/{area}/{path:path}", page.file),
        Route("/p/{project}/{screen}", page.screen),
        Route("/p/{project}/{screen}/step/{way:str}", page.step, methods=["POST"]),
        Route("/p/{project}/{screen}/stop/{run}", page.stop, methods=["POST"]),
        Route("/p/{project}/{screen}/{action}", page.act, methods=["POST"]),
    ]
    handlers = {
        SfumatoError: partial(_refused, page),
        HTTPException: partial(_refused, page),
        Exception: partial(_unexpected, page),
    }
    middleware = [Middleware(Gate, access=access)]
    return Starlette(routes=routes, middleware=middleware, exception_handlers=handlers)


def _refused(page: Page, request: Request, error: Exception) -> Response:
    if isinstance(error, HTTPException):
        status, text = error.status_code, error.detail
    else:
        status, text = 404 if isinstance(error, InputError) else 422, str(error)
    view = page._view(request)
    return _html(error_page(view, status, view.message(text)), status)


def _unexpected(page: Page, request: Request, error: Exception) -> Response:
    """Tell the type of an unexpected error only: its text may hold cells."""
    text = page._view(request).say("page.unexpected", kind=type(error).__name__)
    return _html(error_page(page._view(request), 500, text), 500)


def _html(text: str, status: int = 200) -> Response:
    return Response(text.encode("utf-8", "replace"), status, media_type="text/html; charset=utf-8")


def _preferred(header: str) -> str:
    """The first of our languages that the browser asks for."""
    for part in header.lower().split(","):
        code = part.strip()[:2]
        if code in LANGUAGES:
            return code
    return "en"


async def _received(request: Request, copy: Path) -> bool:
    """Write the body of a request to a private file. Returns False if it is too large."""
    handle = os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        size = 0
        async for part in request.stream():
            size += len(part)
            if size > LARGEST_UPLOAD:
                return False
            await run_in_threadpool(file.write, part)
        file.flush()
        await run_in_threadpool(os.fsync, file.fileno())
    return True


async def _progress_events(request: Request, view: ProjectView) -> AsyncIterator[str]:
    """Yield the runs whose state has changed, each as a fragment."""
    known: dict[str, str] = {}
    silent = 0.0
    yield "retry: 2000\n\n"
    while not await request.is_disconnected():
        shown = await run_in_threadpool(_run_fragments, view)
        for number, (state, html) in shown.items():
            if known.get(number) != html:
                known[number] = html
                silent = 0.0
                yield f"data: {json.dumps({'run': number, 'state': state, 'html': html})}\n\n"
        await asyncio.sleep(PAUSE)
        silent += PAUSE
        if silent >= SILENCE:
            silent = 0.0
            yield ": still here\n\n"


def _run_fragments(view: ProjectView) -> dict[str, tuple[str, str]]:
    return {run.number: (run.state, str(run_status(view, run))) for run in runs_of(view.project)[:20]}
