"""Countries by region: their codes, and the English names by which tables call them.

Sources: ISO 3166-1, the 249 codes in use in 2024, for codes and short names; the United Nations' standard M49 for the
regions and subregions. A country is in the smallest region that M49 has for it, such as Western Africa rather than
Sub-Saharan Africa. M49 has no region for Antarctica, and no entry for Taiwan, which stands in Eastern Asia here.
"""

from __future__ import annotations

# A region is a line without an indent, its subregions are indented. A country has its codes of two and three letters,
# its number and its name. Further names follow a bar; case, accents, punctuation and "the" make no difference.
COUNTRIES = """
Africa
  Northern Africa
    DZ DZA 012 Algeria
    EG EGY 818 Egypt
    LY LBY 434 Libya | Libyan Arab Jamahiriya
    MA MAR 504 Morocco
    SD SDN 729 Sudan
    TN TUN 788 Tunisia
    EH ESH 732 Western Sahara
  Eastern Africa
    IO IOT 086 British Indian Ocean Territory
    BI BDI 108 Burundi
    KM COM 174 Comoros
    DJ DJI 262 Djibouti
    ER ERI 232 Eritrea
    ET ETH 231 Ethiopia
    TF ATF 260 French Southern Territories
    KE KEN 404 Kenya
    MG MDG 450 Madagascar
    MW MWI 454 Malawi
    MU MUS 480 Mauritius
    YT MYT 175 Mayotte
    MZ MOZ 508 Mozambique
    RE REU 638 Réunion
    RW RWA 646 Rwanda
    SC SYC 690 Seychelles
    SO SOM 706 Somalia
    SS SSD 728 South Sudan
    TZ TZA 834 Tanzania | United Republic of Tanzania | Tanzania, United Republic of
    UG UGA 800 Uganda
    ZM ZMB 894 Zambia
    ZW ZWE 716 Zimbabwe
  Middle Africa
    AO AGO 024 Angola
    CM CMR 120 Cameroon
    CF CAF 140 Central African Republic
    TD TCD 148 Chad
    CG COG 178 Congo | Republic of the Congo | Congo-Brazzaville
    CD COD 180 Democratic Republic of the Congo | Congo (Democratic Republic of the) | Congo-Kinshasa | DR Congo
    GQ GNQ 226 Equatorial Guinea
    GA GAB 266 Gabon
    ST STP 678 Sao Tome and Principe
  Southern Africa
    BW BWA 072 Botswana
    SZ SWZ 748 Eswatini | Swaziland
    LS LSO 426 Lesotho
    NA NAM 516 Namibia
    ZA ZAF 710 South Africa
  Western Africa
    BJ BEN 204 Benin
    BF BFA 854 Burkina Faso
    CV CPV 132 Cabo Verde | Cape Verde
    CI CIV 384 Côte d'Ivoire | Ivory Coast
    GM GMB 270 Gambia
    GH GHA 288 Ghana
    GN GIN 324 Guinea
    GW GNB 624 Guinea-Bissau
    LR LBR 430 Liberia
    ML MLI 466 Mali
    MR MRT 478 Mauritania
    NE NER 562 Niger
    NG NGA 566 Nigeria
    SH SHN 654 Saint Helena, Ascension and Tristan da Cunha | Saint Helena
    SN SEN 686 Senegal
    SL SLE 694 Sierra Leone
    TG TGO 768 Togo
Americas
  Caribbean
    AI AIA 660 Anguilla
    AG ATG 028 Antigua and Barbuda
    AW ABW 533 Aruba
    BS BHS 044 Bahamas
    BB BRB 052 Barbados
    BQ BES 535 Bonaire, Sint Eustatius and Saba | Caribbean Netherlands
    VG VGB 092 British Virgin Islands | Virgin Islands (British)
    KY CYM 136 Cayman Islands
    CU CUB 192 Cuba
    CW CUW 531 Curaçao
    DM DMA 212 Dominica
    DO DOM 214 Dominican Republic
    GD GRD 308 Grenada
    GP GLP 312 Guadeloupe
    HT HTI 332 Haiti
    JM JAM 388 Jamaica
    MQ MTQ 474 Martinique
    MS MSR 500 Montserrat
    PR PRI 630 Puerto Rico
    BL BLM 652 Saint Barthélemy
    KN KNA 659 Saint Kitts and Nevis
    LC LCA 662 Saint Lucia
    MF MAF 663 Saint Martin (French part) | Saint Martin
    VC VCT 670 Saint Vincent and the Grenadines
    SX SXM 534 Sint Maarten (Dutch part) | Sint Maarten
    TT TTO 780 Trinidad and Tobago
    TC TCA 796 Turks and Caicos Islands
    VI VIR 850 United States Virgin Islands | Virgin Islands (U.S.) | US Virgin Islands
  Central America
    BZ BLZ 084 Belize
    CR CRI 188 Costa Rica
    SV SLV 222 El Salvador
    GT GTM 320 Guatemala
    HN HND 340 Honduras
    MX MEX 484 Mexico
    NI NIC 558 Nicaragua
    PA PAN 591 Panama
  South America
    AR ARG 032 Argentina
    BO BOL 068 Bolivia | Bolivia (Plurinational State of)
    BV BVT 074 Bouvet Island
    BR BRA 076 Brazil
    CL CHL 152 Chile
    CO COL 170 Colombia
    EC ECU 218 Ecuador
    FK FLK 238 Falkland Islands | Falkland Islands (Malvinas)
    GF GUF 254 French Guiana
    GY GUY 328 Guyana
    PY PRY 600 Paraguay
    PE PER 604 Peru
    GS SGS 239 South Georgia and the South Sandwich Islands
    SR SUR 740 Suriname
    UY URY 858 Uruguay
    VE VEN 862 Venezuela | Venezuela (Bolivarian Republic of)
  Northern America
    BM BMU 060 Bermuda
    CA CAN 124 Canada
    GL GRL 304 Greenland
    PM SPM 666 Saint Pierre and Miquelon
    US USA 840 United States of America | United States | USA
Asia
  Central Asia
    KZ KAZ 398 Kazakhstan
    KG KGZ 417 Kyrgyzstan
    TJ TJK 762 Tajikistan
    TM TKM 795 Turkmenistan
    UZ UZB 860 Uzbekistan
  Eastern Asia
    CN CHN 156 China
    HK HKG 344 Hong Kong | China, Hong Kong Special Administrative Region
    JP JPN 392 Japan
    MO MAC 446 Macao | China, Macao Special Administrative Region | Macau
    MN MNG 496 Mongolia
    KP PRK 408 North Korea | Democratic People's Republic of Korea | Korea (Democratic People's Republic of)
    KR KOR 410 South Korea | Republic of Korea | Korea (Republic of)
    TW TWN 158 Taiwan | Taiwan (Province of China)
  South-eastern Asia
    BN BRN 096 Brunei | Brunei Darussalam
    KH KHM 116 Cambodia
    ID IDN 360 Indonesia
    LA LAO 418 Laos | Lao People's Democratic Republic
    MY MYS 458 Malaysia
    MM MMR 104 Myanmar | Burma
    PH PHL 608 Philippines
    SG SGP 702 Singapore
    TH THA 764 Thailand
    TL TLS 626 Timor-Leste | East Timor
    VN VNM 704 Vietnam | Viet Nam
  Southern Asia
    AF AFG 004 Afghanistan
    BD BGD 050 Bangladesh
    BT BTN 064 Bhutan
    IN IND 356 India
    IR IRN 364 Iran | Iran (Islamic Republic of)
    MV MDV 462 Maldives
    NP NPL 524 Nepal
    PK PAK 586 Pakistan
    LK LKA 144 Sri Lanka
  Western Asia
    AM ARM 051 Armenia
    AZ AZE 031 Azerbaijan
    BH BHR 048 Bahrain
    CY CYP 196 Cyprus
    GE GEO 268 Georgia
    IQ IRQ 368 Iraq
    IL ISR 376 Israel
    JO JOR 400 Jordan
    KW KWT 414 Kuwait
    LB LBN 422 Lebanon
    OM OMN 512 Oman
    PS PSE 275 Palestine | State of Palestine | Palestine, State of
    QA QAT 634 Qatar
    SA SAU 682 Saudi Arabia
    SY SYR 760 Syria | Syrian Arab Republic
    TR TUR 792 Türkiye | Turkey
    AE ARE 784 United Arab Emirates
    YE YEM 887 Yemen
Europe
  Eastern Europe
    BY BLR 112 Belarus
    BG BGR 100 Bulgaria
    CZ CZE 203 Czechia | Czech Republic
    HU HUN 348 Hungary
    MD MDA 498 Moldova | Republic of Moldova | Moldova (Republic of)
    PL POL 616 Poland
    RO ROU 642 Romania
    RU RUS 643 Russia | Russian Federation
    SK SVK 703 Slovakia
    UA UKR 804 Ukraine
  Northern Europe
    AX ALA 248 Åland Islands
    DK DNK 208 Denmark
    EE EST 233 Estonia
    FO FRO 234 Faroe Islands
    FI FIN 246 Finland
    GG GGY 831 Guernsey
    IS ISL 352 Iceland
    IE IRL 372 Ireland
    IM IMN 833 Isle of Man
    JE JEY 832 Jersey
    LV LVA 428 Latvia
    LT LTU 440 Lithuania
    NO NOR 578 Norway
    SJ SJM 744 Svalbard and Jan Mayen | Svalbard and Jan Mayen Islands
    SE SWE 752 Sweden
    GB GBR 826 United Kingdom | United Kingdom of Great Britain and Northern Ireland | UK
  Southern Europe
    AL ALB 008 Albania
    AD AND 020 Andorra
    BA BIH 070 Bosnia and Herzegovina
    HR HRV 191 Croatia
    GI GIB 292 Gibraltar
    GR GRC 300 Greece
    VA VAT 336 Holy See | Vatican City | Holy See (Vatican City State)
    IT ITA 380 Italy
    MT MLT 470 Malta
    ME MNE 499 Montenegro
    MK MKD 807 North Macedonia | Macedonia
    PT PRT 620 Portugal
    SM SMR 674 San Marino
    RS SRB 688 Serbia
    SI SVN 705 Slovenia
    ES ESP 724 Spain
  Western Europe
    AT AUT 040 Austria
    BE BEL 056 Belgium
    FR FRA 250 France
    DE DEU 276 Germany
    LI LIE 438 Liechtenstein
    LU LUX 442 Luxembourg
    MC MCO 492 Monaco
    NL NLD 528 Netherlands | Netherlands (Kingdom of the)
    CH CHE 756 Switzerland
Oceania
  Australia and New Zealand
    AU AUS 036 Australia
    CX CXR 162 Christmas Island
    CC CCK 166 Cocos (Keeling) Islands
    HM HMD 334 Heard Island and McDonald Islands
    NZ NZL 554 New Zealand
    NF NFK 574 Norfolk Island
  Melanesia
    FJ FJI 242 Fiji
    NC NCL 540 New Caledonia
    PG PNG 598 Papua New Guinea
    SB SLB 090 Solomon Islands
    VU VUT 548 Vanuatu
  Micronesia
    GU GUM 316 Guam
    KI KIR 296 Kiribati
    MH MHL 584 Marshall Islands
    FM FSM 583 Micronesia (Federated States of) | Federated States of Micronesia
    NR NRU 520 Nauru
    MP MNP 580 Northern Mariana Islands
    PW PLW 585 Palau
    UM UMI 581 United States Minor Outlying Islands
  Polynesia
    AS ASM 016 American Samoa
    CK COK 184 Cook Islands
    PF PYF 258 French Polynesia
    NU NIU 570 Niue
    PN PCN 612 Pitcairn
    WS WSM 882 Samoa
    TK TKL 772 Tokelau
    TO TON 776 Tonga
    TV TUV 798 Tuvalu
    WF WLF 876 Wallis and Futuna
Antarctica
  Antarctica
    AQ ATA 010 Antarctica
"""
