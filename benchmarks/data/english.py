"""English words for the synthetic texts: common words, and themes of groups close in meaning.

The words are real so that a pretrained encoder knows them: within a group, one word tells much
about the others. A theme starts with a line of its general words; in the lines below, every group
is between semicolons.
"""

from __future__ import annotations

from typing import NamedTuple

NEGATORS = ("not", "no", "without")
"""Each turns the meaning of the word behind it around."""

_COMMON = """
the of and a to in that it is was for on with as at by from this which or an be are were been
being has have had do does did can could may might must shall should would will i you he she we
they him her us them his its our their my your who whom whose what when where why how if then than
because since while although until unless whether about above across after against along among
around before behind below beside between beyond during except inside into near off onto out
outside over past through toward under upon within also again almost already always away back ever
even far here however indeed instead just later maybe more most much nearly now often once only
perhaps quite rather really seldom so sometimes soon still there therefore thus today together too
usually very well yet
"""
COMMON = tuple(_COMMON.split())
"""Words that belong to no theme, the most frequent first."""


class Theme(NamedTuple):
    """Words of a theme in general, and groups of words that stand for one thing each."""

    general: list[str]
    groups: list[list[str]]


def themes() -> list[Theme]:
    """All themes; general words are as many in each, groups as many and of one size."""
    found = []
    for text in _THEMES:
        general, _, groups = text.strip().partition("\n")
        parts = groups.replace("\n", " ").rstrip(";").split(";")
        found.append(Theme(general.split(), [part.split() for part in parts]))
    return found


_THEMES = (
    """weather climate season sky forecast atmosphere temperature degrees meteorology outdoor
storm hurricane typhoon cyclone tempest; rain rainfall drizzle shower downpour;
snow blizzard avalanche sleet snowfall; ice glacier iceberg frozen frost;
heat warmth hot scorching sweltering; cold chill freezing chilly cool;
sun sunshine sunny sunlight daylight; cloud cloudy overcast fog mist;
thunder lightning thunderstorm flash bolt; flood deluge flooding torrent overflow;
drought arid dry desert parched; wind breeze gust gale windy;
rainbow prism spectrum hue arc; tornado twister whirlwind vortex funnel;
spring blossom bloom april thaw; summer july august june midsummer;
autumn october november september foliage; winter december january february wintry;
humidity moisture damp humid dew; earthquake quake tremor seismic aftershock;
""",
    """animal creature wildlife species fauna beast zoo mammal tail paw
dog puppy hound terrier spaniel; cat kitten feline tabby whiskers;
horse pony stallion mare foal; cow bull calf cattle ox;
sheep lamb ram ewe fleece; bird sparrow robin finch swallow;
eagle hawk falcon owl vulture; fish trout salmon cod tuna;
shark whale dolphin porpoise orca; snake viper cobra python serpent;
insect beetle ant bug grasshopper; bee wasp hornet hive honey;
spider scorpion tarantula arachnid cobweb; monkey ape gorilla chimpanzee baboon;
bear grizzly panda cub bears; wolf fox coyote jackal wolves;
lion tiger leopard cheetah panther; elephant rhino hippo giraffe zebra;
mouse rat hamster squirrel rodent; frog toad lizard turtle crocodile;
""",
    """food meal dish cuisine recipe flavor taste kitchen dinner lunch
bread loaf bun toast dough; cheese cheddar brie mozzarella parmesan;
apple pear plum cherry peach; lemon orange lime grapefruit citrus;
berry strawberry raspberry blueberry cranberry; carrot potato onion cabbage vegetable;
salad lettuce cucumber tomato spinach; beef pork steak bacon ham;
chicken turkey duck goose roast; soup broth stew chowder gravy;
cake pie pastry cookie pudding; candy chocolate sugar caramel syrup;
spice pepper cinnamon ginger garlic; coffee espresso tea cocoa latte;
wine champagne vineyard grape merlot; beer ale lager brewery pub;
milk cream butter yogurt dairy; rice pasta noodle spaghetti macaroni;
shrimp crab lobster oyster clam; bake fry boil grill simmer;
""",
    """medicine health hospital clinic medical treatment patient illness disease cure
doctor physician surgeon nurse paramedic; heart cardiac artery pulse coronary;
lung breathing asthma respiratory bronchitis; brain neuron skull cerebral nerve;
cancer tumor leukemia malignant chemotherapy; infection virus bacteria germ contagious;
vaccine vaccination immunity antibody immune; drug pill tablet dose prescription;
surgery operation scalpel incision transplant; bone fracture skeleton joint spine;
skin rash acne eczema wrinkle; eye vision retina blind glaucoma;
ear hearing deaf eardrum earache; tooth dentist gum dental teeth;
stomach digestion intestine bowel ulcer; fever flu cough sneeze influenza;
diabetes insulin glucose obesity pancreas; pregnancy birth baby midwife womb;
depression anxiety therapy psychiatrist trauma; blood plasma vein bleeding transfusion;
""",
    """sport athlete team player coach game champion contest league sporting
soccer goalkeeper striker penalty midfielder; basketball dunk rebound hoop dribble;
baseball pitcher inning homer shortstop; tennis racket serve volley wimbledon;
golf putt caddie golfer fairway; hockey puck goalie skate rink;
swimming swimmer freestyle backstroke pool; running sprint marathon jogging runner;
cycling bicycle bike cyclist pedal; boxing boxer knockout punch heavyweight;
wrestling wrestler judo karate grapple; rowing canoe kayak paddle oar;
skiing ski snowboard slalom slope; climbing climber mountaineer ascent rope;
gymnastics gymnast acrobat somersault trampoline; rugby scrum tackle fullback touchdown;
cricket wicket batsman bowler umpire; racing rally racer lap speedway;
stadium arena crowd fans spectator; medal trophy olympics podium bronze;
""",
    """money finance economy economic financial market fund capital profit income
bank banker deposit account teller; loan mortgage debt lender credit;
stock share equity shareholder dividend; bond treasury maturity bonds yield;
tax taxation revenue levy tariff; currency dollar euro yen sterling;
inflation price deflation cost expensive; insurance insurer premium policyholder insured;
bankruptcy insolvent bankrupt creditor liquidation; accounting audit ledger accountant bookkeeping;
budget spending deficit surplus expenditure; investor investment portfolio invest asset;
trade export import merchant commerce; salary wage payroll earnings bonus;
retirement pension annuity retiree savings; payment cash invoice bill receipt;
merger acquisition takeover buyout consolidation; startup entrepreneur founder venture business;
unemployment layoff jobless unemployed recession; auction bidder bid auctioneer buyer;
""",
    """politics government state nation political public policy official leader civic
election vote ballot voter poll; parliament senate congress legislature senator;
president premier chancellor presidency presidential; king queen monarch throne crown;
democracy republic liberty freedom democratic; dictator tyrant regime junta authoritarian;
diplomat embassy ambassador consul treaty; liberal conservative socialist progressive leftist;
campaign candidate nominee slogan debate; mayor council municipal alderman township;
reform amendment constitution referendum charter; protest demonstration march riot protester;
revolution rebel uprising coup insurgent; immigration immigrant refugee asylum migrant;
border frontier customs checkpoint boundary; corruption bribery scandal corrupt embezzlement;
propaganda censorship rhetoric ideology manifesto; cabinet minister secretary ministry bureaucrat;
welfare subsidy poverty homeless poor; colony empire colonial imperial dominion;
""",
    """law legal justice rule statute case legislation lawful rights crime
court judge tribunal courtroom magistrate; lawyer attorney solicitor barrister counsel;
trial jury juror verdict testimony; prison jail inmate prisoner warden;
police officer detective sheriff constable; murder homicide killer assassin manslaughter;
theft thief burglar robbery stolen; fraud swindle scam forgery counterfeit;
contract clause agreement lease signature; patent copyright trademark invention license;
evidence proof witness fingerprint alibi; guilty convicted conviction culprit blame;
arrest custody handcuffs detain suspect; kidnap hostage ransom abduction captive;
smuggling trafficking cartel contraband heroin; appeal plaintiff defendant lawsuit petition;
inheritance heir bequest estate testament; divorce alimony spouse annulment separation;
punishment punish fine execution probation; vandalism arson graffiti loot hooligan;
""",
    """war military army troops force combat defense battle conflict enemy
soldier infantry sergeant corporal trooper; navy fleet warship destroyer battleship;
bomber squadron airstrike drone raid; general commander colonel captain lieutenant;
gun rifle pistol revolver shotgun; bomb explosion grenade blast explosive;
missile warhead ballistic torpedo launcher; tank armored artillery cannon howitzer;
sword dagger blade spear shield; castle fortress moat tower rampart;
nuclear uranium atomic plutonium fallout; submarine sonar periscope submerged underwater;
peace truce ceasefire armistice reconciliation; spy espionage intelligence agent undercover;
terrorism terrorist hijack extremist militant; siege blockade encircle bombardment assault;
victory triumph conquest conqueror defeat; veteran wounded casualty amputee medic;
uniform helmet boots camouflage badge; ammunition bullet cartridge shell gunpowder;
""",
    """technology computer digital device machine electronic system data tech engineer
software program code programmer compiler; internet web website online browser;
phone telephone smartphone mobile cellular; hacker malware password encryption firewall;
network router server wireless ethernet; database query spreadsheet storage backup;
robot robotics automation android cyborg; chip processor semiconductor silicon transistor;
screen monitor display pixel resolution; keyboard typing cursor joystick keypad;
email inbox spam mailbox message; gaming console nintendo playstation gamer;
algorithm optimization recursion heuristic computation; camera lens photograph photo shutter;
battery charger voltage lithium electrode; laser beam hologram infrared optics;
printer ink scanner copier printing; satellite antenna radar transmitter receiver;
blog tweet facebook follower hashtag; laptop desktop notebook workstation mainframe;
""",
    """science space universe astronomy cosmic galaxy orbit theory scientific discovery
planet mars venus jupiter saturn; moon lunar crater eclipse moonlight;
star constellation supernova stars stellar; solar corona sunspot flare heliocentric;
comet meteor asteroid meteorite debris; rocket launch booster liftoff thruster;
astronaut cosmonaut spacesuit spacewalk crew; telescope observatory hubble binoculars mirror;
gravity relativity einstein newton mass; shuttle spacecraft capsule probe lander;
alien ufo extraterrestrial martian saucer; physics quantum particle photon electron;
chemistry molecule chemical acid compound; oxygen hydrogen nitrogen carbon helium;
mathematics algebra equation theorem calculus; geometry triangle circle square polygon;
statistics probability average variance median; biology organism evolution darwin ecology;
genetics gene dna chromosome mutation; laboratory experiment scientist microscope hypothesis;
""",
    """transport travel vehicle traffic passenger journey route speed transit commuter
car automobile sedan coupe hatchback; truck lorry van trailer pickup;
bus minibus tram trolley streetcar; train railway locomotive rail carriage;
subway metro underground platform turnstile; plane airplane jet aircraft airliner;
airport runway terminal baggage boarding; helicopter rotor chopper hover parachute;
ship vessel ferry liner steamship; boat yacht sail sailboat dinghy;
harbor port dock wharf pier; road highway motorway freeway lane;
bridge viaduct span overpass tunnel; engine motor piston cylinder turbine;
fuel gasoline petrol diesel refuel; motorcycle scooter moped biker sidecar;
accident crash collision wreck pileup; wheel tire axle brake rim;
hotel inn motel hostel lodging; tourist tourism vacation sightseeing souvenir;
""",
    """nature landscape land earth region scenery terrain wild geography natural
mountain peak hill ridge alpine; river stream creek brook tributary;
lake pond lagoon reservoir marsh; ocean sea atlantic pacific tide;
beach sand coast shore dune; island isle archipelago peninsula atoll;
forest woods jungle rainforest grove; tree oak pine maple birch;
flower rose tulip lily daisy; grass lawn meadow prairie pasture;
valley canyon gorge ravine cliff; volcano lava eruption magma ash;
cave cavern grotto stalactite caves; rock stone granite boulder pebble;
diamond ruby emerald sapphire jewel; metal iron copper steel zinc;
gold silver platinum nugget bullion; mining coal miner quarry ore;
garden gardener shrub greenhouse planting; map atlas compass latitude longitude;
""",
    """farm rural environment countryside agriculture cultivation harvest resource energy ecological
farmer farming peasant rancher barn; wheat corn barley oats rye;
cotton tobacco sugarcane plantation crop; tractor plow harvester sickle hoe;
soil fertilizer compost manure mud; irrigation dam canal aqueduct sprinkler;
livestock herd grazing shepherd flock; pig hog swine piglet boar;
hen rooster egg chick coop; orchard olive almond walnut fig;
pesticide herbicide weed fungus toxic; pollution smog contamination sewage polluted;
recycling garbage trash waste landfill; emission warming dioxide methane ozone;
fire wildfire flame blaze firefighter; oil petroleum crude refinery pipeline;
electricity electric grid generator watt; renewable windmill hydroelectric geothermal biomass;
fishing fisherman angler bait net; conservation extinction endangered habitat sanctuary;
""",
    """music musical musician tune song sound melody rhythm perform audience
piano pianist organ harpsichord organist; guitar guitarist bass banjo ukulele;
violin cello viola fiddle violinist; drum drummer percussion cymbal tambourine;
trumpet trombone horn tuba brass; flute clarinet oboe bassoon saxophone;
singer vocalist soprano tenor choir; opera aria libretto verdi wagner;
orchestra symphony conductor philharmonic concerto; jazz blues swing improvisation ragtime;
band punk grunge rocker indie; rap rapper rhyme lyrics reggae;
album chart billboard recording studio; bluegrass folk ballad nashville cowboy;
dance dancer ballet ballerina choreography; waltz tango salsa polka ballroom;
concert gig festival encore venue; composer mozart beethoven bach sonata;
hymn gospel carol psalm chant; radio broadcast stereo microphone loudspeaker;
""",
    """art culture artist creative exhibition style beauty artistic literature entertainment
painting painter canvas portrait brush; sculpture sculptor statue marble carving;
drawing sketch pencil crayon illustration; museum gallery exhibit curator collection;
architecture architect building skyscraper dome; theater stage actor drama playwright;
film movie cinema director hollywood; television sitcom episode channel series;
comedy comedian joke humor laugh; novel novelist fiction author chapter;
poetry poem poet verse sonnet; library book librarian bookshelf encyclopedia;
newspaper journalist editor reporter headline; magazine publisher publication article periodical;
myth legend folklore hero saga; dragon unicorn fairy wizard witch;
ghost haunted vampire zombie monster; pottery ceramic clay porcelain vase;
cartoon animation comic superhero disney; circus clown juggler magician puppet;
""",
    """history ancient tradition historical century heritage religion belief era sacred
church christian bishop priest pope; mosque muslim islam quran imam;
synagogue jewish rabbi torah hebrew; buddhist buddha monk temple meditation;
hindu yoga karma guru sanskrit; bible scripture prophet apostle disciple;
god divine deity lord almighty; angel heaven saint halo holy;
devil hell satan demon evil; prayer worship pray faith blessing;
funeral grave cemetery coffin burial; wedding bride groom marriage bridesmaid;
christmas easter santa holiday thanksgiving; pharaoh pyramid mummy egypt nile;
rome roman caesar gladiator emperor; greek athens sparta zeus olympus;
viking norse saxon celtic druid; medieval knight feudal baron chivalry;
archaeology archaeologist excavation artifact relic; dinosaur prehistoric mammoth jurassic fossil;
""",
    """education learning knowledge training skill study lesson teach academic career
school classroom pupil kindergarten playground; university college campus faculty dean;
teacher professor tutor lecturer instructor; student undergraduate graduate freshman sophomore;
exam quiz grade marks assessment; homework assignment essay worksheet textbook;
diploma bachelor doctorate thesis dissertation; scholarship tuition grant stipend fellowship;
language grammar vocabulary dialect bilingual; french german spanish italian english;
writing spelling alphabet letter handwriting; philosophy philosopher logic ethics plato;
psychology cognitive perception memory behavior; office desk clerk typist receptionist;
manager executive boss supervisor chairman; employee worker staff colleague coworker;
union strike picket labor workforce; hiring resume interview applicant vacancy;
meeting conference seminar workshop agenda; research researcher journal citation scholar;
""",
    """home family house domestic household daily living neighbor life indoor
mother father parent mom dad; child kid toddler infant children;
brother sister sibling twin cousin; grandmother grandfather grandma grandpa grandson;
wife husband fiance girlfriend boyfriend; chair table sofa couch furniture;
bed pillow blanket mattress sleep; bathroom toilet bathtub sink faucet;
cleaning broom vacuum mop detergent; refrigerator oven microwave stove dishwasher;
plate bowl cup spoon fork; door window lock key gate;
roof ceiling attic chimney basement; apartment flat tenant landlord rent;
shirt blouse sweater jacket coat; trousers jeans pants shorts skirt;
shoe boot sandal sneaker slipper; hat cap scarf glove mitten;
necklace bracelet earring ring brooch; hair beard haircut barber shampoo;
""",
    """feeling emotion mood mind person human sense attitude experience social
happy joy delight cheerful smile; sad grief sorrow tears mourning;
anger angry rage fury furious; fear afraid panic scared horror;
love romance affection kiss passion; shame guilt embarrassed regret humiliation;
pride arrogant vanity ego boast; courage brave bravery fearless bold;
friend friendship companion buddy pal; lonely alone solitude isolation hermit;
tired fatigue exhausted weary sleepy; dream nightmare fantasy imagination illusion;
luck lucky fortune chance fate; gambling casino poker roulette lottery;
chess checkmate pawn rook grandmaster; toy doll puzzle lego teddy;
shopping mall shop supermarket customer; perfume scent fragrance odor smell;
red blue green yellow purple; seven eight nine dozen hundred;
""",
)
