"""A person's projects with what belongs to them, as rows of `context.store`."""

from app.search.words import spaced
from app.tools.authoring import Ledger, folded, meant

MOST_ACTIVITY = 50
PROJECT = spaced("proyecto proyectos projeto projetos project projects")
TASK = spaced("tarea tareas tarefa tarefas task tasks pendiente pendientes pendente pendentes")


class Board:
    """One call's view. Tasks and notes name their project by its row's key; so does the log."""

    def __init__(self, store):
        self._store = store
        self.projects = Ledger(store, "project:")
        self._ledgers = {}

    @property
    def tasks(self):
        return self._ledger("task:")

    @property
    def notes(self):
        return self._ledger("note:")

    def active(self):
        """Return the projects that are not archived, the newest first."""
        return [project for project in self.projects.entries if not project.fields.get("archived")]

    def named(self, wanted, archived=False):
        """Return the projects that somebody may mean: active ones (or the `archived`) before all others."""
        everything = self.projects.entries
        first = [one for one in everything if bool(one.fields.get("archived")) == archived]
        return meant(first, wanted, PROJECT) or meant(everything, wanted, PROJECT)

    def called(self, name):
        """Return the project of exactly this name, whatever its accents and case, or None."""
        wanted = folded(name)
        same = (one for one in self.projects.entries if folded(one.text) == wanted)
        return next(same, None)

    def tasks_of(self, project):
        return [task for task in self.tasks.entries if task.fields["project"] == project.key]

    def notes_of(self, project):
        return [note for note in self.notes.entries if note.fields["project"] == project.key]

    def project_of(self, task):
        return next((one for one in self.projects.entries if one.key == task.fields["project"]), None)

    def log(self, project, what, about=""):
        """Note an event; the fifty newest of a project are kept."""
        activity = self.activity(project)
        activity.add(what=what, about=about)
        for old in activity.entries[MOST_ACTIVITY:]:
            activity.erase(old)

    def activity(self, project):
        return self._ledger(f"activity:{project.key}:")

    def set_aside(self, project):
        """Remove the project and all that belongs to it; for a week it can be brought back."""
        for entry in self.activity(project).entries:
            self.activity(project).erase(entry)
        for task in self.tasks_of(project):
            self.tasks.set_aside(task)
        for note in self.notes_of(project):
            self.notes.set_aside(note)
        self.projects.set_aside(project)

    def bring_back(self, name):
        """Return the project of this name that was deleted last, with its tasks and notes, or None."""
        wanted = folded(name)
        gone = [one for one in self.projects.set_aside_rows() if folded(one.text) == wanted]
        if not gone:
            return None
        project = self.projects.bring_back(max(gone, key=lambda one: one.fields["removed"]))
        for ledger in (self.tasks, self.notes):
            for row in ledger.set_aside_rows():
                if row.fields["project"] == project.key:
                    ledger.bring_back(row)
        return project

    def _ledger(self, prefix):
        if prefix not in self._ledgers:
            self._ledgers[prefix] = Ledger(self._store, prefix)
        return self._ledgers[prefix]
