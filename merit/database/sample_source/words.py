"""Names and places that several sample databases draw from. All people are invented."""

_FIRST = (
    "Ada Alma Amir Anneli Basil Bea Bruno Carys Cecil Clara Cormac Dilys Dora Edith Elif Emeka Esme Farid Fern Florin "
    "Gita Greta Hamish Hana Hedda Ifor Ines Iris Ivo Jonah Joan Kasia Kofi Lars Leila Linus Lowri Magda Malik Marek "
    "Mira Moira Nadia Ned Nuala Olive Omar Orla Otto Pavel Petra Priya Quentin Rhys Rosa Ruth Sanna Selma Seth Silas "
    "Tamsin Tariq Thea Tomas Ulla Una Vera Viktor Wanda Wilf Xenia Yara Yusuf Zofia"
)

_LAST = (
    "Abbott Adeyemi Ainsley Barros Beckett Bergman Birch Calder Castell Chowdhury Corrigan Dahl Darby Devlin Eklund "
    "Elwes Farrow Fenwick Fontaine Gallo Garside Greaves Haddad Hallam Hendry Ibekwe Ingram Jansson Jarvis Kaminski "
    "Keane Kerr Lacey Lindqvist Lockwood Maddox Marlow Mbeki Moss Nakamura Nash Novak Okoro Orton Pascoe Penrose "
    "Petrov Quayle Quill Rahman Redfern Rossi Sadler Sato Seward Stark Tanner Thorne Ueda Underhill Varga Vane "
    "Walcott Weller Whitlock Yates Yilmaz Zeller"
)

FIRST = tuple(_FIRST.split())
LAST = tuple(_LAST.split())
