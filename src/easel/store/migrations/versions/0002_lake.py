"""The lake: artifacts, paths, file sets, uploads, blobs, tags, lineage, grants."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

BIG_SERIAL = sa.BigInteger().with_variant(sa.Integer, "sqlite")
NAME = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "artifacts",
        sa.Column("id", BIG_SERIAL, autoincrement=True, nullable=False),
        sa.Column("project_id", sa.String(40), nullable=False),
        sa.Column("kind", sa.String(8), nullable=False),
        sa.Column("name", NAME, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("creator", sa.String(40), nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("digest", sa.LargeBinary(32)),
        sa.Column("made_by", sa.BigInteger),
        sa.Column("dropped_at", sa.BigInteger),
        sa.CheckConstraint("kind IN ('file', 'fileset', 'job')", name="ck_artifacts_kind"),
        sa.PrimaryKeyConstraint("id", name="pk_artifacts"),
        sa.UniqueConstraint(
            "project_id", "kind", "name", "version", name="uq_artifacts_project_id_kind_name_version"
        ),
    )
    op.create_index("ix_artifacts_digest_project_id", "artifacts", ["digest", "project_id"])
    op.create_index("ix_artifacts_made_by", "artifacts", ["made_by"])
    op.create_index(
        "ix_artifacts_project_id_kind_created_at_id", "artifacts", ["project_id", "kind", "created_at", "id"]
    )
    op.create_index(
        "ix_artifacts_project_id_kind_creator_created_at",
        "artifacts",
        ["project_id", "kind", "creator", "created_at"],
    )
    op.create_index("ix_artifacts_project_id_kind_size", "artifacts", ["project_id", "kind", "size"])
    op.create_table(
        "blobs",
        sa.Column("digest", sa.LargeBinary(32), nullable=False),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("object", sa.LargeBinary(32), nullable=False),
        sa.Column("offset", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("digest", name="pk_blobs"),
    )
    op.create_index("ix_blobs_object", "blobs", ["object"])
    op.create_table(
        "file_set_versions",
        sa.Column("artifact_id", sa.BigInteger, autoincrement=False, nullable=False),
        sa.Column("root", sa.LargeBinary(32), nullable=False),
        sa.Column("level", sa.Integer, nullable=False),
        sa.Column("first", NAME, nullable=False),
        sa.Column("files", sa.BigInteger, nullable=False),
        sa.Column("sources", sa.JSON, nullable=False),
        sa.PrimaryKeyConstraint("artifact_id", name="pk_file_set_versions"),
    )
    op.create_table(
        "file_sets",
        sa.Column("project_id", sa.String(40), nullable=False),
        sa.Column("name", NAME, nullable=False),
        sa.Column("latest", sa.Integer, nullable=False),
        sa.Column("deleted_at", sa.BigInteger),
        sa.PrimaryKeyConstraint("project_id", "name", name="pk_file_sets"),
    )
    op.create_table(
        "files",
        sa.Column("project_id", sa.String(40), nullable=False),
        sa.Column("path", NAME, nullable=False),
        sa.Column("latest", sa.Integer, nullable=False),
        sa.Column("deleted_at", sa.BigInteger),
        sa.PrimaryKeyConstraint("project_id", "path", name="pk_files"),
    )
    op.create_table(
        "grants",
        sa.Column("project_id", sa.String(40), nullable=False),
        sa.Column("scope", sa.String(8), nullable=False),
        sa.Column("pattern", NAME, nullable=False),
        sa.Column("principal", sa.String(100), nullable=False),
        sa.Column("may_read", sa.Boolean, nullable=False),
        sa.Column("may_write", sa.Boolean, nullable=False),
        sa.CheckConstraint("scope IN ('path', 'fileset')", name="ck_grants_scope"),
        sa.PrimaryKeyConstraint("project_id", "scope", "pattern", "principal", name="pk_grants"),
    )
    op.create_table(
        "group_members",
        sa.Column("project_id", sa.String(40), nullable=False),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("user_id", sa.String(40), nullable=False),
        sa.PrimaryKeyConstraint("project_id", "name", "user_id", name="pk_group_members"),
    )
    op.create_index("ix_group_members_project_id_user_id", "group_members", ["project_id", "user_id"])
    op.create_table(
        "job_reads",
        sa.Column("job", sa.BigInteger, autoincrement=False, nullable=False),
        sa.Column("file_set", sa.BigInteger, autoincrement=False, nullable=False),
        sa.PrimaryKeyConstraint("job", "file_set", name="pk_job_reads"),
    )
    op.create_index("ix_job_reads_file_set", "job_reads", ["file_set"])
    op.create_table(
        "lineage",
        sa.Column("id", BIG_SERIAL, autoincrement=True, nullable=False),
        sa.Column("project_id", sa.String(40), nullable=False),
        sa.Column("source", sa.BigInteger, nullable=False),
        sa.Column("target", sa.BigInteger, nullable=False),
        sa.Column("job", sa.BigInteger),
        sa.PrimaryKeyConstraint("id", name="pk_lineage"),
        sa.UniqueConstraint("source", "target", "job", name="uq_lineage_source_target_job"),
    )
    op.create_index("ix_lineage_project_id_id", "lineage", ["project_id", "id"])
    op.create_index("ix_lineage_target_source", "lineage", ["target", "source"])
    op.create_table(
        "manifest_nodes",
        sa.Column("digest", sa.LargeBinary(32), nullable=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
        sa.Column("added_at", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("digest", name="pk_manifest_nodes"),
    )
    op.create_table(
        "objects",
        sa.Column("digest", sa.LargeBinary(32), nullable=False),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("state", sa.String(8), nullable=False),
        sa.Column("claimed_at", sa.BigInteger, nullable=False),
        sa.CheckConstraint("state IN ('arriving', 'present', 'doomed')", name="ck_objects_state"),
        sa.PrimaryKeyConstraint("digest", name="pk_objects"),
    )
    op.create_index("ix_objects_state_claimed_at", "objects", ["state", "claimed_at"])
    op.create_table(
        "tags",
        sa.Column("artifact_id", sa.BigInteger, autoincrement=False, nullable=False),
        sa.Column("key", NAME, nullable=False),
        sa.Column("project_id", sa.String(40), nullable=False),
        sa.Column("kind", sa.String(8), nullable=False),
        sa.Column("text", NAME),
        sa.Column("number", sa.Float(precision=53)),
        sa.Column("moment", sa.BigInteger),
        sa.PrimaryKeyConstraint("artifact_id", "key", name="pk_tags"),
    )
    op.create_index(
        "ix_tags_moment",
        "tags",
        ["project_id", "kind", "key", "moment", "artifact_id"],
        postgresql_where=sa.text("moment IS NOT NULL"),
        sqlite_where=sa.text("moment IS NOT NULL"),
    )
    op.create_index(
        "ix_tags_number",
        "tags",
        ["project_id", "kind", "key", "number", "artifact_id"],
        postgresql_where=sa.text("number IS NOT NULL"),
        sqlite_where=sa.text("number IS NOT NULL"),
    )
    op.create_index(
        "ix_tags_text",
        "tags",
        ["project_id", "kind", "key", "text", "artifact_id"],
        postgresql_where=sa.text("text IS NOT NULL"),
        sqlite_where=sa.text("text IS NOT NULL"),
    )
    op.create_table(
        "uploads",
        sa.Column("id", sa.String(40), nullable=False),
        sa.Column("project_id", sa.String(40), nullable=False),
        sa.Column("creator", sa.String(40), nullable=False),
        sa.Column("state", sa.String(10), nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("touched_at", sa.BigInteger, nullable=False),
        sa.Column("ended_at", sa.BigInteger),
        sa.Column("made_by", sa.BigInteger),
        sa.CheckConstraint("state IN ('pending', 'committed', 'aborted')", name="ck_uploads_state"),
        sa.PrimaryKeyConstraint("id", name="pk_uploads"),
    )
    op.create_index("ix_uploads_project_id_created_at", "uploads", ["project_id", "created_at"])
    op.create_index("ix_uploads_state_touched_at", "uploads", ["state", "touched_at"])
    op.create_table(
        "upload_items",
        sa.Column("upload_id", sa.String(40), nullable=False),
        sa.Column("path", NAME, nullable=False),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("digest", sa.LargeBinary(32), nullable=False),
        sa.Column("held", sa.Boolean, nullable=False),
        sa.Column("version", sa.Integer),
        sa.ForeignKeyConstraint(["upload_id"], ["uploads.id"], name="fk_upload_items_upload_id_uploads"),
        sa.PrimaryKeyConstraint("upload_id", "path", name="pk_upload_items"),
    )
    op.create_index("ix_upload_items_digest", "upload_items", ["digest"])
    op.create_table(
        "upload_objects",
        sa.Column("stage_id", sa.String(80), nullable=False),
        sa.Column("upload_id", sa.String(40), nullable=False),
        sa.Column("digest", sa.LargeBinary(32), nullable=False),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("part_size", sa.BigInteger, nullable=False),
        sa.Column("handle", sa.Text, nullable=False),
        sa.Column("members", sa.LargeBinary, nullable=False),
        sa.Column("stored", sa.Boolean, nullable=False),
        sa.ForeignKeyConstraint(["upload_id"], ["uploads.id"], name="fk_upload_objects_upload_id_uploads"),
        sa.PrimaryKeyConstraint("stage_id", name="pk_upload_objects"),
        sa.UniqueConstraint("upload_id", "digest", name="uq_upload_objects_upload_id_digest"),
    )
