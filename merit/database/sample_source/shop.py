"""The corner shop that also sells by web: products, suppliers, deliveries, customers, orders, reviews, refunds."""

from __future__ import annotations

from datetime import date, timedelta

from merit.database.sample_source.asked.shop import QUESTIONS
from merit.database.sample_source.builder import Dice, Lines, Rows, Sample
from merit.database.sample_source.words import FIRST, LAST

TABLES = """
CREATE TABLE category (
    category_id INTEGER PRIMARY KEY, name TEXT NOT NULL, parent_id INTEGER REFERENCES category(category_id));
CREATE TABLE supplier (
    supplier_id INTEGER PRIMARY KEY, name TEXT NOT NULL, country TEXT NOT NULL, "lead time days" INTEGER,
    status TEXT NOT NULL);
CREATE TABLE product (
    product_id INTEGER PRIMARY KEY, name TEXT NOT NULL, category_id INTEGER NOT NULL REFERENCES category(category_id),
    supplier_id INTEGER REFERENCES supplier(supplier_id), price_cents INTEGER NOT NULL, weight_g INTEGER,
    status TEXT NOT NULL);
CREATE TABLE customer (
    customer_id INTEGER PRIMARY KEY, name TEXT NOT NULL, email TEXT, country TEXT NOT NULL, city TEXT,
    joined_on TEXT NOT NULL, newsletter INTEGER);
CREATE TABLE "order" (
    order_id INTEGER PRIMARY KEY, customer_id INTEGER NOT NULL REFERENCES customer(customer_id),
    ordered_on TEXT NOT NULL, channel TEXT NOT NULL, status INTEGER NOT NULL, "voucher code" TEXT);
CREATE TABLE "order line" (
    order_id INTEGER NOT NULL REFERENCES "order"(order_id), line_no INTEGER NOT NULL,
    product_id INTEGER NOT NULL REFERENCES product(product_id), quantity INTEGER NOT NULL,
    price_cents INTEGER NOT NULL, PRIMARY KEY (order_id, line_no));
CREATE TABLE delivery (
    delivery_id INTEGER PRIMARY KEY, product_id INTEGER NOT NULL REFERENCES product(product_id),
    delivered_on TEXT NOT NULL, quantity INTEGER NOT NULL, status TEXT);
CREATE TABLE review (
    review_id INTEGER PRIMARY KEY, product_id INTEGER NOT NULL REFERENCES product(product_id),
    customer_id INTEGER NOT NULL REFERENCES customer(customer_id), stars INTEGER NOT NULL, comment TEXT,
    written_on TEXT NOT NULL);
CREATE TABLE refund (
    refund_id INTEGER PRIMARY KEY, order_id INTEGER NOT NULL REFERENCES "order"(order_id),
    amount_cents INTEGER NOT NULL, reason_code TEXT);
"""

CATEGORIES = [
    (1, "Pantry", None),
    (2, "Drinks", None),
    (3, "Household", None),
    (4, "Fresh", None),
    (5, "Spices", 1),
    (6, "Tinned food", 1),
    (7, "Sweets", 1),
    (8, "Tea", 2),
    (9, "Coffee", 2),
    (10, "Juice", 2),
    (11, "Candles", 3),
    (12, "Soap", 3),
    (13, "Cheese", 4),
    (14, "Bread", 4),
]
SUPPLIERS = [
    (1, "Hargreave Mills", "GB", 3, "active"),
    (2, "Casa Bruna", "IT", 9, "active"),
    (3, "Nordlys Roastery", "SE", 7, "active"),
    (4, "Van Dijk Kaas", "NL", 5, "active"),
    (5, "Lighthouse Candles", "GB", 12, "paused"),
    (6, "Savon du Midi", "FR", None, "active"),
    (7, "Teegarten Bremen", "DE", 6, "active"),
    (8, "Orchard Lane", "GB", 2, "closed"),
]
# category: its suppliers and its products
GOODS = {
    5: ((2, None), ("Smoked paprika", "Fennel seed", "Bay leaves", "Black pepper", "Saffron threads")),
    6: ((2, 1), ("Plum tomatoes", "Butter beans", "Sardines in oil", "Chickpeas", "Peach halves")),
    7: ((1, 6), ("Salted fudge", "Aniseed drops", "Nougat bar", "Dark chocolate")),
    8: ((7,), ("Breakfast blend", "Earl Grey", "Green sencha", "Camomile", "Smoky lapsang")),
    9: ((3,), ("House espresso", "Filter roast", "Decaf beans", "Cold brew bags")),
    10: ((8,), ("Cloudy apple", "Pear and ginger", "Blackcurrant cordial")),
    11: ((5,), ("Beeswax pillar", "Storm lantern refill", "Tealights")),
    12: ((6,), ("Lavender soap", "Olive oil soap", "Kitchen soap")),
    13: ((4,), ("Young gouda", "Old gouda", "Goat cheese", "Blue wedge")),
    14: ((1,), ("Rye loaf", "Oat bread", "Cheese scone")),
}
CITIES = {
    "GB": ("Bristol", "Leeds", "Dundee"),
    "DE": ("Bremen", "Kassel"),
    "FR": ("Nantes", "Lille"),
    "NL": ("Utrecht", "Leiden"),
    "SE": ("Malmö", "Umeå"),
}
COMMENTS = (None, None, None, "would buy again", "arrived broken", "smaller than I thought", "lovely", "too salty")
VOUCHERS = {None: 14, "SPRING10": 2, "HELLO5": 2, "QUAY20": 1}


def rows(dice: Dice) -> Rows:
    """All rows, table by table, parents first."""
    products: Lines = []
    for category_id, (suppliers, names) in GOODS.items():
        for name in names:
            products.append(
                (
                    len(products) + 1,
                    name,
                    category_id,
                    dice.pick(suppliers),
                    5 * dice.between(24, 380) - 1,
                    None if dice.chance(0.12) else 10 * dice.between(4, 150),
                    dice.weighted({"A": 8, "S": 2, "D": 2}),
                )
            )
    customers: Lines = []
    for number, name in enumerate(dice.some([f"{first} {last}" for first in FIRST for last in LAST], 160), 1):
        country = dice.weighted({"GB": 9, "DE": 3, "FR": 2, "NL": 3, "SE": 1})
        city = None if dice.chance(0.06) else dice.pick(CITIES[country]) + ("  " if dice.chance(0.1) else "")
        email = None if dice.chance(0.2) else f"{name.replace(' ', '.').lower()}@mail.example"
        joined = dice.day(date(2019, 2, 1), date(2022, 12, 31)).isoformat()
        customers.append((number, name, email, country, city, joined, dice.weighted({1: 4, 0: 5, None: 1})))
    orders, lines, refunds = _orders(dice, products, customers)
    deliveries: Lines = []
    for day in sorted(dice.day(date(2023, 1, 2), date(2024, 8, 30)) for _ in range(320)):
        product = dice.between(1, len(products))
        status = dice.weighted({"ok": 12, "short": 2, "damaged": 1, None: 1})
        deliveries.append((len(deliveries) + 1, product, day.strftime("%d/%m/%Y"), 6 * dice.between(1, 16), status))
    reviews: Lines = []
    for day in sorted(dice.day(date(2023, 1, 8), date(2024, 8, 31)) for _ in range(260)):
        reviews.append(
            (
                len(reviews) + 1,
                dice.between(1, len(products) - 3),
                dice.between(1, 160),
                dice.weighted({5: 6, 4: 5, 3: 3, 2: 2, 1: 1}),
                dice.pick(COMMENTS),
                day.isoformat(),
            )
        )
    return {
        "category": list(CATEGORIES),
        "supplier": list(SUPPLIERS),
        "product": products,
        "customer": customers,
        "order": orders,
        "order line": lines,
        "delivery": deliveries,
        "review": reviews,
        "refund": refunds,
    }


def _orders(dice: Dice, products: Lines, customers: Lines) -> tuple[Lines, Lines, Lines]:
    """Orders with one to five lines; web and telephone write ISO dates, the till writes DD/MM/YYYY."""
    orders: Lines = []
    lines: Lines = []
    refunds: Lines = []
    keen = {customer[0]: dice.between(1, 8) for customer in customers if not dice.chance(0.07)}
    last_day = date(2024, 8, 31)
    for number, day in enumerate(sorted(dice.day(date(2023, 1, 2), last_day) for _ in range(1300)), 1):
        channel = dice.weighted({"web": 6, "till": 4, "phone": 1})
        status = 40 if day < last_day - timedelta(days=12) else dice.weighted({10: 1, 20: 2, 30: 3})
        if dice.chance(0.06):
            status = 90
        written = day.strftime("%d/%m/%Y") if channel == "till" else day.isoformat()
        orders.append((number, dice.weighted(keen), written, channel, status, dice.weighted(VOUCHERS)))
        for line_no, product in enumerate(dice.some(products, dice.weighted({1: 4, 2: 4, 3: 3, 4: 1, 5: 1})), 1):
            # Some lines were sold before the last rise in price.
            price = product[4] - (20 if day.year == 2023 and dice.chance(0.5) else 0)
            lines.append((number, line_no, product[0], dice.weighted({1: 7, 2: 4, 3: 2, 6: 1}), price))
        if dice.chance(0.05):
            reason = dice.pick(("BRK", "LATE", "MIND", None))
            refunds.append((len(refunds) + 1, number, 10 * dice.between(10, 290), reason))
    return orders, lines, refunds


SAMPLE = Sample(
    id="shop",
    title="Corner shop and web orders",
    description="A corner shop on the quay that also sells by web and telephone: products, orders, reviews, refunds.",
    seed=20260102,
    tables=TABLES,
    rows=rows,
    dirt=(
        "`order` is a reserved word; `order line`, `voucher code` and `lead time days` are names with a space.",
        "`order.ordered_on` comes in two formats: YYYY-MM-DD from web and phone, DD/MM/YYYY from the till. "
        "`delivery.delivered_on` is DD/MM/YYYY, `review.written_on` and `customer.joined_on` are YYYY-MM-DD.",
        "`status` is a column of four tables with four meanings: order (10 new, 20 paid, 30 shipped, 40 delivered, "
        "90 cancelled), product (A active, S seasonal, D discontinued), supplier and delivery (words).",
        "Money is kept in whole cents; the price of a line may differ from today's price of the product.",
        "`customer.city` ends with blanks in some rows and is NULL in others.",
        "`customer.newsletter` is 1, 0 or NULL (never asked).",
        "Refund reasons are codes: BRK broken, LATE too late, MIND changed mind, NULL not noted.",
        "Some products have no supplier or no weight.",
    ),
    questions=QUESTIONS,
)
