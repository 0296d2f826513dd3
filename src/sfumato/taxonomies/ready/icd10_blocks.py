"""The chapters and blocks of ICD-10: which three-character categories each holds, and what it is about.

Source: World Health Organization, International Statistical Classification of Diseases and Related Health Problems,
10th Revision, version of 2019. Where its blocks are nested, as for malignant neoplasms and accidents, these are the
smallest. Two blocks are as wide as in earlier versions, whose codes are still in tables: A90-A99 with the old codes of
dengue, and U80-U89. What a chapter or block is about is said in short words of our own.
"""

from __future__ import annotations

# A chapter is a line that begins with its number; the lines under it are its blocks.
CHAPTERS_AND_BLOCKS = """
I A00-B99 infectious and parasitic diseases
  A00-A09 infections of the intestine
  A15-A19 tuberculosis
  A20-A28 bacterial infections from animals
  A30-A49 other bacterial infections
  A50-A64 sexually transmitted infections
  A65-A69 other infections by spirochaetes
  A70-A74 other infections by chlamydiae
  A75-A79 infections by rickettsiae
  A80-A89 viral infections of the central nervous system
  A90-A99 viral fevers from insects and haemorrhagic fevers
  B00-B09 viral infections of skin and mucous membranes
  B15-B19 viral hepatitis
  B20-B24 HIV disease
  B25-B34 other viral infections
  B35-B49 fungal infections
  B50-B64 infections by protozoa
  B65-B83 worms
  B85-B89 lice and mites and other infestations
  B90-B94 late effects of infections
  B95-B98 germs named as the cause of another disease
  B99-B99 other infections
II C00-D48 neoplasms
  C00-C14 cancer of lip and mouth and throat
  C15-C26 cancer of the digestive organs
  C30-C39 cancer of the airways and chest
  C40-C41 cancer of bone and joint cartilage
  C43-C44 cancer of the skin
  C45-C49 cancer of mesothelium and soft tissue
  C50-C50 cancer of the breast
  C51-C58 cancer of the female genital organs
  C60-C63 cancer of the male genital organs
  C64-C68 cancer of the urinary tract
  C69-C72 cancer of eye and brain and nerves
  C73-C75 cancer of thyroid and other glands
  C76-C80 cancer of unclear or secondary site
  C81-C96 cancer of lymphatic and blood-forming tissue
  C97-C97 several primary cancers
  D00-D09 in situ neoplasms
  D10-D36 benign neoplasms
  D37-D48 neoplasms of uncertain behaviour
III D50-D89 blood and immune system
  D50-D53 anaemia from lack of nutrients
  D55-D59 anaemia from loss of red cells
  D60-D64 aplastic and other anaemia
  D65-D69 clotting defects and bleeding
  D70-D77 other diseases of blood and its organs
  D80-D89 disorders of the immune mechanism
IV E00-E90 hormones and nutrition and metabolism
  E00-E07 thyroid gland
  E10-E14 diabetes mellitus
  E15-E16 other regulation of glucose
  E20-E35 other hormone glands
  E40-E46 malnutrition
  E50-E64 other lack of nutrients
  E65-E68 obesity and overeating
  E70-E90 metabolic disorders
V F00-F99 mental and behavioural disorders
  F00-F09 organic mental disorders
  F10-F19 disorders from psychoactive substances
  F20-F29 schizophrenia and delusional disorders
  F30-F39 mood disorders
  F40-F48 neurotic and stress-related disorders
  F50-F59 behaviour with bodily disturbances
  F60-F69 adult personality and behaviour
  F70-F79 intellectual disability
  F80-F89 disorders of development
  F90-F98 behaviour with onset in childhood
  F99-F99 mental disorder without details
VI G00-G99 nervous system
  G00-G09 inflammation of the central nervous system
  G10-G14 system atrophy of the central nervous system
  G20-G26 movement disorders
  G30-G32 other degeneration of the nervous system
  G35-G37 demyelination of the central nervous system
  G40-G47 episodic disorders
  G50-G59 nerves and nerve roots and plexus
  G60-G64 polyneuropathy
  G70-G73 muscle and its junction with nerves
  G80-G83 cerebral palsy and paralysis
  G90-G99 other disorders of the nervous system
VII H00-H59 eye
  H00-H06 eyelid and tear system and orbit
  H10-H13 conjunctiva
  H15-H22 sclera and cornea and iris
  H25-H28 lens
  H30-H36 choroid and retina
  H40-H42 glaucoma
  H43-H45 vitreous body and globe
  H46-H48 optic nerve and visual pathways
  H49-H52 eye muscles and movement and refraction
  H53-H54 visual disturbance and blindness
  H55-H59 other disorders of the eye
VIII H60-H95 ear
  H60-H62 outer ear
  H65-H75 middle ear and mastoid
  H80-H83 inner ear
  H90-H95 other disorders of the ear
IX I00-I99 circulatory system
  I00-I02 acute rheumatic fever
  I05-I09 chronic rheumatic heart disease
  I10-I15 high blood pressure
  I20-I25 ischaemic heart disease
  I26-I28 heart disease from the lung and its vessels
  I30-I52 other heart disease
  I60-I69 vessels of the brain
  I70-I79 arteries and capillaries
  I80-I89 veins and lymph vessels
  I95-I99 other disorders of the circulation
X J00-J99 respiratory system
  J00-J06 acute infections of the upper airways
  J09-J18 influenza and pneumonia
  J20-J22 other acute infections of the lower airways
  J30-J39 other diseases of the upper airways
  J40-J47 chronic diseases of the lower airways
  J60-J70 lung diseases from external agents
  J80-J84 other diseases of the lung tissue
  J85-J86 pus in the lower airways
  J90-J94 other diseases of the pleura
  J95-J99 other diseases of the respiratory system
XI K00-K93 digestive system
  K00-K14 mouth and salivary glands and jaws
  K20-K31 oesophagus and stomach and duodenum
  K35-K38 appendix
  K40-K46 hernia
  K50-K52 enteritis and colitis without infection
  K55-K64 other diseases of the intestine
  K65-K67 peritoneum
  K70-K77 liver
  K80-K87 gallbladder and bile ducts and pancreas
  K90-K93 other diseases of the digestive system
XII L00-L99 skin
  L00-L08 infections of the skin
  L10-L14 blistering diseases
  L20-L30 dermatitis and eczema
  L40-L45 psoriasis and other scaling diseases
  L50-L54 hives and erythema
  L55-L59 skin damage from radiation
  L60-L75 hair and nails and glands of the skin
  L80-L99 other disorders of the skin
XIII M00-M99 muscles and bones and connective tissue
  M00-M03 infections of joints
  M05-M14 inflammation of many joints
  M15-M19 wear of joints
  M20-M25 other joint disorders
  M30-M36 systemic disorders of connective tissue
  M40-M43 deformed spine
  M45-M49 diseases of the vertebrae
  M50-M54 other disorders of the back
  M60-M63 muscles
  M65-M68 synovium and tendon
  M70-M79 other disorders of soft tissue
  M80-M85 density and structure of bone
  M86-M90 other disorders of bone
  M91-M94 cartilage
  M95-M99 other disorders of muscles and bones
XIV N00-N99 urinary and genital system
  N00-N08 glomeruli
  N10-N16 tubules and tissue of the kidney
  N17-N19 kidney failure
  N20-N23 stones
  N25-N29 other disorders of kidney and ureter
  N30-N39 other diseases of the urinary system
  N40-N51 male genital organs
  N60-N64 breast
  N70-N77 inflammation of female pelvic organs
  N80-N98 other disorders of the female genital tract
  N99-N99 other disorders of the urinary and genital system
XV O00-O99 pregnancy and childbirth
  O00-O08 pregnancy that ends in abortion
  O10-O16 high blood pressure and protein in pregnancy
  O20-O29 other disorders of the mother in pregnancy
  O30-O48 care for the fetus and possible delivery problems
  O60-O75 complications of labour
  O80-O84 delivery
  O85-O92 complications after childbirth
  O94-O99 other conditions of pregnancy and childbirth
XVI P00-P96 conditions from around birth
  P00-P04 newborn affected by the mother or by birth
  P05-P08 length of gestation and fetal growth
  P10-P15 birth trauma
  P20-P29 breathing and circulation of the newborn
  P35-P39 infections of the newborn
  P50-P61 bleeding and blood of the newborn
  P70-P74 passing hormonal and metabolic disorders of the newborn
  P75-P78 digestion of the newborn
  P80-P83 skin and temperature of the newborn
  P90-P96 other disorders from around birth
XVII Q00-Q99 congenital malformations
  Q00-Q07 malformed nervous system
  Q10-Q18 malformed eye and ear and face and neck
  Q20-Q28 malformed circulatory system
  Q30-Q34 malformed respiratory system
  Q35-Q37 cleft lip and palate
  Q38-Q45 other malformed digestive system
  Q50-Q56 malformed genital organs
  Q60-Q64 malformed urinary system
  Q65-Q79 malformed muscles and bones
  Q80-Q89 other malformations
  Q90-Q99 chromosomal abnormalities
XVIII R00-R99 symptoms and findings
  R00-R09 symptoms of circulation and breathing
  R10-R19 symptoms of digestion and abdomen
  R20-R23 symptoms of skin
  R25-R29 symptoms of nerves and movement
  R30-R39 symptoms of the urinary system
  R40-R46 symptoms of perception and mood and behaviour
  R47-R49 symptoms of speech and voice
  R50-R69 general symptoms
  R70-R79 findings in blood without diagnosis
  R80-R82 findings in urine without diagnosis
  R83-R89 findings in other samples without diagnosis
  R90-R94 findings in images and function tests without diagnosis
  R95-R99 unknown causes of death
XIX S00-T98 injury and poisoning
  S00-S09 injuries to the head
  S10-S19 injuries to the neck
  S20-S29 injuries to the chest
  S30-S39 injuries to abdomen and lower back and pelvis
  S40-S49 injuries to shoulder and upper arm
  S50-S59 injuries to elbow and forearm
  S60-S69 injuries to wrist and hand
  S70-S79 injuries to hip and thigh
  S80-S89 injuries to knee and lower leg
  S90-S99 injuries to ankle and foot
  T00-T07 injuries of several regions
  T08-T14 injuries of an unnamed region
  T15-T19 foreign body in a natural opening
  T20-T25 burns of outer surfaces
  T26-T28 burns of eye and inner organs
  T29-T32 burns of several or unnamed regions
  T33-T35 frostbite
  T36-T50 poisoning by drugs
  T51-T65 toxic effects of other substances
  T66-T78 other effects of external causes
  T79-T79 early complications of trauma
  T80-T88 complications of medical care
  T90-T98 late effects of injury and poisoning
XX V01-Y98 external causes
  V01-V09 pedestrian in a transport accident
  V10-V19 cyclist in a transport accident
  V20-V29 motorcyclist in a transport accident
  V30-V39 three-wheeler in a transport accident
  V40-V49 car in a transport accident
  V50-V59 van in a transport accident
  V60-V69 lorry in a transport accident
  V70-V79 bus in a transport accident
  V80-V89 other land transport accidents
  V90-V94 water transport accidents
  V95-V97 air and space transport accidents
  V98-V99 other transport accidents
  W00-W19 falls
  W20-W49 lifeless mechanical forces
  W50-W64 forces of persons and animals and plants
  W65-W74 accidental drowning
  W75-W84 other accidental threats to breathing
  W85-W99 electric current and radiation and extreme air
  X00-X09 smoke and fire
  X10-X19 contact with hot things
  X20-X29 contact with venomous animals and plants
  X30-X39 forces of nature
  X40-X49 accidental poisoning
  X50-X57 overexertion and travel and privation
  X58-X59 other accidental exposure
  X60-X84 intentional self-harm
  X85-Y09 assault
  Y10-Y34 event of undetermined intent
  Y35-Y36 legal intervention and war
  Y40-Y59 adverse effects of drugs in use
  Y60-Y69 mishaps in medical care
  Y70-Y82 incidents with medical devices
  Y83-Y84 later complications of procedures
  Y85-Y89 late effects of external causes
  Y90-Y98 supplementary factors
XXI Z00-Z99 contact with health services
  Z00-Z13 examination and investigation
  Z20-Z29 hazards of communicable diseases
  Z30-Z39 reproduction
  Z40-Z54 procedures and care
  Z55-Z65 social hazards to health
  Z70-Z76 other contact with health services
  Z80-Z99 personal and family history
XXII U00-U99 special purposes
  U00-U49 new diseases and emergency use
  U80-U89 resistance to drugs
"""
