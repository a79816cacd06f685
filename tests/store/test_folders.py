"""Where files of one person alone lie, and their end."""

from pathlib import Path

import pytest

from app.errors import RecadoError
from app.store.personal_data import PersonFolders
from tests.deep import make_deep


@pytest.fixture
def folders(deep_ground: Path) -> PersonFolders:
    return PersonFolders(deep_ground / "workspace", deep_ground / "data")


def test_what_a_server_made_too_deep_for_any_path_goes_with_its_person(folders: PersonFolders) -> None:
    """It kept every sweep from what is old."""
    workspace, media = folders.of("person_ana").values()
    workspace.mkdir(parents=True)
    make_deep(workspace / "inner")
    media.mkdir(parents=True)
    folders.remove(["person_ana"])
    assert not workspace.exists()
    assert not media.exists()


def test_a_folder_that_stays_is_named_and_keeps_no_other(folders: PersonFolders) -> None:
    stays, goes = folders.of("person_ana")["workspace"], folders.of("person_beto")["workspace"]
    goes.mkdir(parents=True)
    stays.write_text("a file in the place of the folder")
    with pytest.raises(RecadoError, match="person_ana could not be removed"):
        folders.remove(["person_ana", "person_beto"])
    assert not goes.exists()


def test_a_link_in_the_place_of_a_folder_goes_and_what_it_leads_to_stays(folders: PersonFolders) -> None:
    place = folders.of("person_ana")["workspace"]
    kept = place.parent / "kept"
    kept.mkdir(parents=True)
    place.symlink_to(kept)
    folders.remove(["person_ana"])
    assert not place.is_symlink()
    assert kept.is_dir()
