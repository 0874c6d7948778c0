"""Settings, read once from the environment; nothing else in the house reads ``os.environ`` for them.

What this module does not know: what the folders hold. It only says where they are.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from platformdirs import user_data_path
from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict


class Settings(BaseSettings):
    """Every environment variable the product reads (contract: Places).

    Units: ``upload_limit_mb`` in MiB, ``statement_timeout_s`` in seconds.
    """

    model_config = SettingsConfigDict(env_prefix="MERIT_", extra="ignore", frozen=True)

    home: Path = Field(default_factory=lambda: user_data_path("merit-explorer"))
    model: str = "auto"
    encoder: str = "auto"
    memory: str = ""
    endpoint_key: SecretStr = SecretStr("")
    upload_limit_mb: int = Field(default=50, ge=1, le=200)
    statement_timeout_s: float = Field(default=30.0, gt=0)

    @property
    def models_dir(self) -> Path:
        """Converted and downloaded embedded models."""
        return self.home / "models"

    @property
    def memory_uri(self) -> str:
        """LanceDB URI of the memory: ``MERIT_MEMORY``, else a folder in the home."""
        return self.memory or str(self.home / "memory")

    @property
    def uploads_dir(self) -> Path:
        """One folder per owner below it."""
        return self.home / "uploads"

    @property
    def runs_dir(self) -> Path:
        """One folder per experiment over a stream, and the answers they share."""
        return self.home / "runs"

    @property
    def episodes_dir(self) -> Path:
        """One bundle ``<id>.jsonl`` per finished episode."""
        return self.home / "episodes"


@lru_cache(maxsize=1)
def settings() -> Settings:
    """The settings of this process (tests call ``settings.cache_clear()`` after changing the environment)."""
    return Settings()
