(w INT, d INT, c INT, last TEXT)
RETURNS TABLE (balance NUMERIC, item INT, supply INT, quantity INT, amount NUMERIC,
  delivery TIMESTAMP) LANGUAGE plpgsql AS $$
DECLARE
  asker INT := c; named BIGINT; number INT; owed NUMERIC;
BEGIN
  IF c = 0 THEN
    SELECT count(*) INTO named FROM customer WHERE c_w_id = w AND c_d_id = d AND c_last = last;
    SELECT c_id INTO STRICT asker FROM customer WHERE c_w_id = w AND c_d_id = d AND c_last = last
     ORDER BY c_first OFFSET (named - 1) / 2 LIMIT 1;
  END IF;
  SELECT c_balance INTO STRICT owed FROM customer
   WHERE c_w_id = w AND c_d_id = d AND c_id = asker;
  SELECT o_id INTO number FROM orders WHERE o_w_id = w AND o_d_id = d AND o_c_id = asker
   ORDER BY o_id DESC LIMIT 1;
  RETURN QUERY SELECT owed, ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d
   FROM order_line WHERE ol_w_id = w AND ol_d_id = d AND ol_o_id = number;
END $$
