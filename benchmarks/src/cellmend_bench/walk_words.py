"""Names, places and things that stand in the tables of `walk`, and nowhere in what learns."""

from __future__ import annotations


def listed(text: str) -> list[str]:
    """The parts of a list between commas."""
    return [" ".join(part.split()) for part in text.split(",")]


FIRST = listed("""
    Abigail, Adrian, Beatrice, Bernard, Camille, Clement, Daphne, Desmond, Eleanor, Everett, Fiona, Felix, Georgia,
    Gilbert, Harriet, Hector, Imogen, Isaac, Josephine, Jasper, Katrina, Kenneth, Lucinda, Leonard, Marianne, Malcolm,
    Nadia, Nigel, Octavia, Oscar, Philippa, Quentin, Rosalind, Rupert, Sabrina, Stanley, Theresa, Tobias, Ursula,
    Vincent, Winifred, Walter""")
LAST = listed("""
    Abernathy, Blackwood, Carmichael, Dunbar, Ellsworth, Fairbanks, Galloway, Hathaway, Ingram, Jamison, Kirkland,
    Lockhart, Merriweather, Norwood, Oglesby, Pemberton, Quigley, Rutherford, Stanhope, Thackeray, Underhill,
    Vandermeer, Wainwright, Yardley, Ainsley, Bellamy, Crawley, Drummond, Eastwood, Fitzgerald, Greenleaf, Holloway,
    Iverson, Kensington, Lancaster, Montague, Pickering, Ramsey, Sheffield, Templeton, Whitaker, Yeats, Zeller,
    Ashcroft, Bannister, Cavendish""")
CITIES = listed("""
    Boise Idaho 83702 83704 83709, Eugene Oregon 97401 97405, Spokane Washington 99201 99203 99208,
    Tacoma Washington 98402 98408, Reno Nevada 89501 89509, Fresno California 93701 93720, Tucson Arizona 85701 85719,
    Provo Utah 84601 84604, Pueblo Colorado 81001 81005, Lubbock Texas 79401 79423, Waco Texas 76701 76708,
    Tulsa Oklahoma 74103 74135, Wichita Kansas 67202 67212, Lincoln Nebraska 68502 68516,
    Duluth Minnesota 55802 55811, Madison Wisconsin 53703 53711, Peoria Illinois 61602 61614, Dayton Ohio 45402 45429,
    Lansing Michigan 48906 48911, Macon Georgia 31201 31210, Mobile Alabama 36602 36608,
    Knoxville Tennessee 37902 37919, Bozeman Montana 59715 59718, Bangor Maine 04401, Laramie Wyoming 82070 82072,
    Burlington Vermont 05401, Dover Delaware 19901 19904""")
ADDRESSES = [(city, state, code) for city, state, *codes in map(str.split, CITIES) for code in codes]
ORTE = listed("""
    Flensburg 24937, Kiel 24103, Rostock 18055, Stralsund 18435, Oldenburg 26121, Osnabrück 49074, Göttingen 37073,
    Kassel 34117, Marburg 35037, Erfurt 99084, Jena 07743, Chemnitz 09111, Görlitz 02826, Bayreuth 95444,
    Passau 94032, Regensburg 93047, Ingolstadt 85049, Memmingen 87700, Konstanz 78462, Tübingen 72070, Trier 54290,
    Saarbrücken 66111, Koblenz 56068, Paderborn 33098, Münster 48143""")
ARTICLES = listed("""
    Claw hammer, Socket wrench, Torque driver, Garden hose, Pruning shears, Leaf rake, Paint roller, Masking tape,
    Sanding block, Wood glue, Cable ties, Extension cord, Work gloves, Safety goggles, Tool belt, Spirit level,
    Tape measure, Drill bits, Circular saw, Hacksaw blade, Wall anchors, Door hinge, Padlock, Light switch, Fuse box,
    Copper pipe, Pipe cutter, Shower head, Sink strainer, Toilet flapper, Furnace filter, Smoke detector""")
WAREN = listed("""
    Briefumschlag, Heftklammern, Kugelschreiber, Locher, Ordner breit, Ordner schmal, Klarsichthülle, Druckerpapier,
    Textmarker, Bleistift, Radiergummi, Klebestift, Schere, Lineal, Taschenrechner, Tischlampe, Papierkorb,
    Stempelkissen, Notizblock, Tonerkassette""")
DEPARTMENTS = listed("Accounting, Procurement, Logistics, Engineering, Legal, Marketing, Research, Maintenance")
KITCHENS = listed("Lebanese, Korean, Peruvian, Ethiopian, Vietnamese, Georgian, Portuguese, Bavarian, Cajun")
SIGNS = listed("""
    Lantern, Copper Pot, Old Mill, Blue Heron, Fig Tree, Iron Gate, Salt Cellar, Paper Moon, Corner House,
    Red Door""")
HOUSES = listed("Kitchen, Grill, Bistro, Tavern, Canteen, Diner")
OPINIONS = listed("lovely, decent, slow, generous, bland, noisy, friendly, pricey, cosy, crowded")
TOPICS = listed("service, portions, terrace, soup, dessert, wine list, music, bread")
NOT_SAID = "ask sales", "not yet given", "will come"  # where nothing was known
NICHT_GESAGT = "folgt noch", "Herr Meier fragen", "kommt später"
