"""Questions about the corner shop."""

from merit.database.sample_source.builder import Asked

ORDER_STATUS = "order.status is a number: 10 new, 20 paid, 30 shipped, 40 delivered, 90 cancelled."
PRODUCT_STATUS = "product.status is a code: A active, S seasonal, D discontinued."
ORDERED = "order.ordered_on is text: YYYY-MM-DD for web and phone orders, DD/MM/YYYY for orders from the till."
COUNTRY = "country holds two-letter codes: GB Britain, DE Germany, FR France, NL Netherlands, SE Sweden, IT Italy."

QUESTIONS = (
    Asked("How many customers do we have on our books?", "SELECT COUNT(*) FROM customer"),
    Asked("How many products are in the catalogue?", "SELECT COUNT(*) FROM product"),
    Asked("What does the Nougat bar cost, in cents?", "SELECT price_cents FROM product WHERE name = 'Nougat bar'"),
    Asked("How many orders came in by phone?", """SELECT COUNT(*) FROM "order" WHERE channel = 'phone'"""),
    Asked("Which suppliers are not active at the moment?", "SELECT name FROM supplier WHERE status <> 'active'"),
    Asked(
        "How many days does Casa Bruna need to deliver?",
        """SELECT "lead time days" FROM supplier WHERE name = 'Casa Bruna'""",
    ),
    Asked("What is the average number of stars over all reviews?", "SELECT AVG(stars) FROM review"),
    Asked("How many cents have we paid back in refunds so far?", "SELECT SUM(amount_cents) FROM refund"),
    Asked(
        "Which voucher codes have people actually used? Each one once.",
        'SELECT DISTINCT "voucher code" FROM "order" WHERE "voucher code" IS NOT NULL',
    ),
    Asked("How many reviews came without a comment?", "SELECT COUNT(*) FROM review WHERE comment IS NULL"),
    Asked(
        "Who became a customer in 2019?",
        "SELECT name FROM customer WHERE joined_on BETWEEN '2019-01-01' AND '2019-12-31'",
    ),
    Asked("How many orders were cancelled?", 'SELECT COUNT(*) FROM "order" WHERE status = 90', ORDER_STATUS),
    Asked(
        "Name the products that we have discontinued.", "SELECT name FROM product WHERE status = 'D'", PRODUCT_STATUS
    ),
    Asked("Which of our suppliers are British?", "SELECT name FROM supplier WHERE country = 'GB'", COUNTRY),
    Asked(
        "How many customers have never been asked whether they want the newsletter?",
        "SELECT COUNT(*) FROM customer WHERE newsletter IS NULL",
        "customer.newsletter is 1 for yes, 0 for no and NULL where nobody asked.",
    ),
    Asked(
        "How many orders did we take on 14 August 2024, over all channels?",
        """SELECT COUNT(*) FROM "order" WHERE ordered_on IN ('2024-08-14', '14/08/2024')""",
        ORDERED,
    ),
    Asked(
        "What percentage of all orders ended up cancelled? One decimal is enough.",
        'SELECT ROUND(100.0 * SUM(status = 90) / COUNT(*), 1) FROM "order"',
        "Percentage cancelled = 100.0 * orders with status 90 / all orders, rounded to one decimal.",
    ),
    Asked(
        "Which products come from Nordlys Roastery?",
        "SELECT product.name FROM product JOIN supplier ON product.supplier_id = supplier.supplier_id "
        "WHERE supplier.name = 'Nordlys Roastery'",
    ),
    Asked(
        "Show me name and price in cents of everything that costs less than 400 cents.",
        "SELECT name, price_cents FROM product WHERE price_cents < 400",
    ),
    Asked(
        "How many orders came through each channel? Channel and count.",
        'SELECT channel, COUNT(*) FROM "order" GROUP BY channel',
    ),
    Asked(
        "What are our five most expensive products? Only the names, dearest first.",
        "SELECT name FROM product ORDER BY price_cents DESC LIMIT 5",
    ),
    Asked(
        "Which categories sit under Drinks?",
        "SELECT child.name FROM category AS child JOIN category AS parent ON child.parent_id = parent.category_id "
        "WHERE parent.name = 'Drinks'",
        "category.parent_id points to the category above; the top categories have none.",
    ),
    Asked(
        "For each supplier that we get products from, how many products is that? Supplier name and number of products.",
        "SELECT supplier.name, COUNT(*) FROM supplier JOIN product ON supplier.supplier_id = product.supplier_id "
        "GROUP BY supplier.name",
    ),
    Asked(
        "Where do our Swedish customers live? Name and city, without the blanks that some cities end with, "
        "and only those whose city we know.",
        "SELECT name, TRIM(city) FROM customer WHERE country = 'SE' AND city IS NOT NULL",
        COUNTRY,
    ),
    Asked(
        "Who ordered by phone with the voucher QUAY20? Every name once.",
        'SELECT DISTINCT customer.name FROM customer JOIN "order" ON customer.customer_id = "order".customer_id '
        'WHERE "order".channel = \'phone\' AND "order"."voucher code" = \'QUAY20\'',
    ),
    Asked(
        "How much did web orders bring in during July 2024, in cents, leaving out cancelled ones?",
        'SELECT SUM("order line".quantity * "order line".price_cents) FROM "order" '
        'JOIN "order line" ON "order".order_id = "order line".order_id '
        'WHERE "order".channel = \'web\' AND "order".status <> 90 '
        "AND \"order\".ordered_on BETWEEN '2024-07-01' AND '2024-07-31'",
        "Money brought in = quantity * price_cents of the order lines. Web orders write ordered_on as YYYY-MM-DD; "
        "status 90 means cancelled.",
    ),
    Asked(
        "Deliveries that arrived damaged: which products were they, and how many pieces each time?",
        "SELECT product.name, delivery.quantity FROM product JOIN delivery "
        "ON product.product_id = delivery.product_id WHERE delivery.status = 'damaged'",
    ),
    Asked(
        "Which products has nobody reviewed yet?",
        "SELECT name FROM product WHERE product_id NOT IN (SELECT product_id FROM review)",
    ),
    Asked(
        "Which customers have never ordered anything?",
        'SELECT name FROM customer WHERE customer_id NOT IN (SELECT customer_id FROM "order")',
    ),
    Asked(
        "How many products are more expensive than our average product?",
        "SELECT COUNT(*) FROM product WHERE price_cents > (SELECT AVG(price_cents) FROM product)",
    ),
    Asked(
        "How many pieces have we sold in each category, cancelled orders included? Category name and pieces.",
        'SELECT category.name, SUM("order line".quantity) FROM category '
        "JOIN product ON category.category_id = product.category_id "
        'JOIN "order line" ON product.product_id = "order line".product_id GROUP BY category.name',
    ),
    Asked(
        "Why did people who had bought the House espresso want money back? I need the reason codes, each once, "
        "without the refunds where nobody noted one.",
        'SELECT DISTINCT refund.reason_code FROM refund JOIN "order line" ON refund.order_id = "order line".order_id '
        'JOIN product ON "order line".product_id = product.product_id '
        "WHERE product.name = 'House espresso' AND refund.reason_code IS NOT NULL",
    ),
    Asked(
        "Counting products under the top categories only (Pantry, Drinks and so on): how many does each one hold?",
        "SELECT parent.name, COUNT(*) FROM category AS parent JOIN category AS child "
        "ON child.parent_id = parent.category_id JOIN product ON product.category_id = child.category_id "
        "GROUP BY parent.name",
        "Products belong to the lower categories; category.parent_id leads to the top category. Give name and count.",
    ),
    Asked(
        "Who are the two customers with the most orders, and how many did each place? Most orders first.",
        'SELECT customer.name, COUNT(*) FROM customer JOIN "order" ON customer.customer_id = "order".customer_id '
        "GROUP BY customer.customer_id ORDER BY COUNT(*) DESC LIMIT 2",
    ),
    Asked(
        "Which customers have bought from us both at the till and by phone?",
        'SELECT customer.name FROM customer JOIN "order" ON customer.customer_id = "order".customer_id '
        "WHERE \"order\".channel = 'till' INTERSECT "
        'SELECT customer.name FROM customer JOIN "order" ON customer.customer_id = "order".customer_id '
        "WHERE \"order\".channel = 'phone'",
    ),
    Asked(
        "How many orders did we get in December 2023, all channels together?",
        """SELECT COUNT(*) FROM "order" WHERE ordered_on LIKE '2023-12-%' OR ordered_on LIKE '%/12/2023'""",
        ORDERED,
    ),
    Asked(
        "Which product brought in the most money over all orders that were not cancelled?",
        'SELECT product.name FROM product JOIN "order line" ON product.product_id = "order line".product_id '
        'JOIN "order" ON "order line".order_id = "order".order_id WHERE "order".status <> 90 '
        'GROUP BY product.product_id ORDER BY SUM("order line".quantity * "order line".price_cents) DESC LIMIT 1',
        "Money brought in = quantity * price_cents of the order lines; status 90 means cancelled.",
    ),
)
