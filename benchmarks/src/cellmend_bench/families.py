"""Families of tables by their names: a third of them is kept for judging, the others are there to learn from."""

from __future__ import annotations

import hashlib
import re

LETTERS = 3  # of the beginning of a name; those that share them are one family
KEPT = 3  # one family in so many is kept for judging

_ALIKE = (  # names that begin differently although their tables are of one kind
    ("uuid", r"^[0-9a-f]{8}-[0-9a-f]{4}-"),
    ("binary", r"\.(dll|exe|sys|cpl)\.csv"),
    ("forum", r"^[a-z]+_20\d{6}-\d{6}"),
    ("disk", r"^(pl\d{4}lah|wd-w)"),
    ("station", r"^[a-z]+\.20\d{4}_"),
    ("network", r"net\d*-v\d"),
    ("song", r"_2b"),
    ("lecture", r"(\.en_|^lec\d|secondorderdifferential)"),
    ("course", r"(20programming|20communications)"),
    ("trip", r"(events$|^trip)"),
    ("connecticut", r"(^ct|^deep_|basin|zoomtowns|^northeast|^eelgrass|^shellfish|^tidal)"),
    ("connecticut", r"(_lis_|^named_water|^soil_|^topo_)"),
    ("security", r"(^extra_help|^overall_customer|^percentage_of_fast|^semi-annual|^national_800|^disability_determ)"),
    ("security", r"(^funding_summary|^cabinet)"),
    ("vermont", r"(^surficial|^bedrock|vermont|^anr_|^limited_access|^state_admin|^quaternary)"),
    ("seattle", r"(^railroad_cross|^shoreline|^eca_|seattle|^dww_|^drainage_and|^spr_|^parks)"),
    ("seattle", r"(^areaways|^signal|^streets)"),
    ("tempe", r"(tempe|^\d\.\d\d_)"),
    ("covid", r"(covid|jefferson_county|vaccination|^lincoln_county)"),
    ("adoption", r"(health_it|^onc_|^office-based)"),
    ("diabetes", r"(diabet|hypert|hyperlip)"),
    ("michigan", r"(_20\d{6}$|^michigan)"),
    ("census", r"(_b\d{5}_$|spoken_at_home|^per_capita)"),
    ("property", r"(rexus|real_property)"),
    ("detroit", r"(detroit|^bus_route|^smart_bus|^vacant)"),
    ("pittsburgh", r"pittsburgh"),
    ("quadrangle", r"(^usgs|^plss|^blm|^federal_open)"),
    ("weather", r"(^u\.s\._|^weather)"),
    ("indicator", r"(lghc-indicator|^adult-smoking|^fruit-and)"),
    ("rapid", r"(^rapidscat|_grace)"),
    ("bankruptcy", r"bankruptcy"),
    ("soil", r"soils"),
    ("boundary", r"(^urban_growth|^watershed_council)"),
    ("infection", r"(^cdph_ssi|^mrsa)"),
    ("survey", r"(^nutrition_physical|^youth_tobacco)"),
    ("verified", r"_2014_0\d{3}_"),
)  # fmt: skip


def family_of(name: str) -> str:
    """The family of a table: what is known to be alike, or else the first letters of its name.

    >>> [family_of(each) for each in ("gov_2018_Traffic_Flow_Counts", "gov_traffic.csv.gz", "git_dot3ui.dll.csv_39")]
    ['tra', 'tra', 'binary']
    """
    own = re.sub(r"^(gov_|git_|rds_[^_]*_)", "", name.removesuffix(".gz").removesuffix(".csv").lower())
    for family, pattern in _ALIKE:
        if re.search(pattern, own):
            return family
    return re.sub(r"[^a-z]", "", own)[:LETTERS]


def is_kept(name: str) -> bool:
    """Whether a table is kept for judging, so that nothing may be learned from it."""
    digest = hashlib.sha256(f"wild {family_of(name)}".encode()).digest()
    return int.from_bytes(digest[:4], "big") % KEPT == 0
