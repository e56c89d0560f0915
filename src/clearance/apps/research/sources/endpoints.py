"""The services' addresses and how fast each may be asked. All can be set, for a mirror or a test.

Ensembl allows 15 requests a second; NCBI 3, or 10 with a key, and wants to know who asks.
"""

from typing import Annotated, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from clearance.apps.research.http import Pace
from clearance.errors import SettingsError


def _address(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("an address begins with https://")
    return value.rstrip("/")


Address = Annotated[str, AfterValidator(_address)]


class Endpoints(BaseSettings):
    """The addresses, each an environment variable `CLEARANCE_RESEARCH_…`."""

    model_config = SettingsConfigDict(env_prefix="CLEARANCE_RESEARCH_", extra="ignore", frozen=True)

    mygene: Address = Field(default="https://mygene.info", description="MyGene: symbols.")
    ensembl: Address = Field(default="https://rest.ensembl.org", description="Ensembl: genes and sequences.")
    ncbi: Address = Field(default="https://eutils.ncbi.nlm.nih.gov", description="NCBI: RefSeq and PubMed.")
    uniprot: Address = Field(default="https://rest.uniprot.org", description="UniProt: proteins.")
    europepmc: Address = Field(default="https://www.ebi.ac.uk", description="Europe PMC: literature.")
    ncbi_api_key: SecretStr | None = Field(default=None, description="Your key at NCBI, for 10 requests/s.")
    ncbi_email: str | None = Field(default=None, description="The e-mail address that NCBI asks for.")

    @classmethod
    def read(cls) -> Self:
        """Return the addresses of the environment; `SettingsError` names the variable that is wrong."""
        try:
            return cls()
        except ValidationError as error:
            wrong = [f"CLEARANCE_RESEARCH_{str(item['loc'][0]).upper()}" for item in error.errors()]
            raise SettingsError(f"Settings cannot be used: {', '.join(wrong)}.") from None

    def pace(self) -> Pace:
        """Return the pace that these services allow."""
        return Pace(
            {
                urlsplit(self.ensembl).netloc: 15.0,
                urlsplit(self.ncbi).netloc: 10.0 if self.ncbi_api_key else 3.0,
            }
        )

    def ncbi_params(self) -> dict[str, str]:
        """Return what NCBI wants with every request: the tool, and the address and key where they are set."""
        params = {"tool": "clearance"}
        if self.ncbi_email:
            params["email"] = self.ncbi_email
        if self.ncbi_api_key:
            params["api_key"] = self.ncbi_api_key.get_secret_value()
        return params
