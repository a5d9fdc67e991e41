"""Who may act in a project: what nobody need ask of users, projects and memberships one by one."""

from __future__ import annotations

from sqlalchemy import update

from easel.declare.roles import Role
from easel.ids import ProjectId, UserId
from easel.records.identity import Project, User
from easel.store import identity
from easel.store.engine import Store, Tx
from easel.store.schema.identity import projects, users


def lab(tx: Tx) -> Project:
    return identity.add_project(tx, "lab", "where we work", UserId("usr_owner"))


def member(tx: Tx, project: Project, name: str = "ana", role: Role = Role.MEMBER) -> User:
    user = identity.add_user(tx, name, home=project.id)
    identity.put_member(tx, project.id, user.id, role)
    return user


def disable(tx: Tx, user: User) -> None:
    tx.execute(update(users).where(users.c.id == user.id).values(disabled_at=tx.now))


def archive(tx: Tx, project: Project) -> None:
    tx.execute(update(projects).where(projects.c.id == project.id).values(archived_at=tx.now))


def test_members_act_in_their_role_and_are_told_as_they_are_stored(store: Store) -> None:
    with store.write() as tx:
        project = lab(tx)
        for role in Role:
            user = member(tx, project, f"user-{role.value}", role)
            assert identity.acting(tx, project.id, user.id) == (
                identity.find_user(tx, user.id),
                identity.find_project(tx, project.id),
                role,
            )


def test_whoever_is_a_member_elsewhere_is_a_stranger_here(store: Store) -> None:
    with store.write() as tx:
        project, other = lab(tx), identity.add_project(tx, "other", "")
        ana, bob = member(tx, project), member(tx, other, "bob", Role.ADMIN)
        assert identity.acting(tx, project.id, bob.id) is None
        assert identity.acting(tx, other.id, ana.id) is None
        identity.put_member(tx, project.id, bob.id, Role.MEMBER)
        found = identity.acting(tx, project.id, bob.id)
        assert found is not None
        assert found[2] is Role.MEMBER, "their role here, whatever it is elsewhere"
        identity.remove_member(tx, project.id, bob.id)
        assert identity.acting(tx, project.id, bob.id) is None


def test_a_platform_admin_acts_as_admin_with_and_without_a_membership(store: Store) -> None:
    with store.write() as tx:
        project = lab(tx)
        root = identity.add_user(tx, "root", home=None, platform_admin=True)
        for _ in range(2):
            found = identity.acting(tx, project.id, root.id)
            assert found is not None
            assert (found[0].id, found[1].id, found[2]) == (root.id, project.id, Role.ADMIN)
            identity.put_member(tx, project.id, root.id, Role.MEMBER)


def test_whoever_is_disabled_acts_nowhere_not_even_as_platform_admin(store: Store) -> None:
    with store.write() as tx:
        project = lab(tx)
        root = identity.add_user(tx, "root", home=None, platform_admin=True)
        ana = member(tx, project)
        for user in (ana, root):
            assert identity.acting(tx, project.id, user.id) is not None
            disable(tx, user)
            assert identity.acting(tx, project.id, user.id) is None


def test_in_an_archived_project_nobody_acts(store: Store) -> None:
    with store.write() as tx:
        project = lab(tx)
        root = identity.add_user(tx, "root", home=None, platform_admin=True)
        ana = member(tx, project, role=Role.ADMIN)
        archive(tx, project)
        assert identity.acting(tx, project.id, ana.id) is None
        assert identity.acting(tx, project.id, root.id) is None


def test_all_who_act_as_members_are_told_at_once_as_one_by_one(store: Store) -> None:
    with store.write() as tx:
        project, other, over = (
            lab(tx),
            identity.add_project(tx, "other", ""),
            identity.add_project(tx, "over", ""),
        )
        ana, bob, gone = (
            member(tx, project),
            member(tx, other, "bob", Role.ADMIN),
            member(tx, project, "gone"),
        )
        root = identity.add_user(tx, "root", home=None, platform_admin=True)
        for one in (project, over):
            identity.put_member(tx, one.id, root.id, Role.MEMBER)
        identity.put_member(tx, other.id, ana.id, Role.ADMIN)
        disable(tx, gone)
        archive(tx, over)
        pairs = [(p.id, u.id) for p in (project, other, over) for u in (ana, bob, gone, root)]
        alone = {pair: found for pair in pairs if (found := identity.acting(tx, *pair)) is not None}
        del alone[other.id, root.id]  # a platform admin who is no member there
        assert identity.all_acting(tx) == alone
        assert len(alone) == 4


def test_nobody_acts_for_a_user_or_in_a_project_that_does_not_exist(store: Store) -> None:
    with store.write() as tx:
        project = lab(tx)
        root = identity.add_user(tx, "root", home=None, platform_admin=True)
        assert identity.acting(tx, project.id, UserId("usr_none")) is None
        assert identity.acting(tx, ProjectId("prj_none"), root.id) is None


def test_one_question_answers_as_looking_at_all_owners_does(store: Store) -> None:
    """What starts a trial and what judges whether its owner may run anything agree."""
    with store.write() as tx:
        project, archived = lab(tx), identity.add_project(tx, "old", "")
        root = identity.add_user(tx, "root", home=None, platform_admin=True)
        ana, gone = member(tx, project), member(tx, project, "gone")
        stranger = member(tx, archived, "stranger")
        disable(tx, gone)
        archive(tx, archived)
        pairs = {(place.id, user.id) for place in (project, archived) for user in (root, ana, gone, stranger)}
        may_not = {pair for pair in pairs if identity.acting(tx, *pair) is None}
        assert may_not == identity.without_rights(tx, pairs)
        assert pairs - may_not == {(project.id, root.id), (project.id, ana.id)}
