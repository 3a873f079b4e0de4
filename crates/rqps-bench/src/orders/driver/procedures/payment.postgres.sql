(w INT, d INT, cw INT, cd INT, c INT, last TEXT, amount INT)
RETURNS TABLE (payer INT, balance NUMERIC) LANGUAGE plpgsql AS $$
DECLARE
  warehouse_name TEXT; district_name TEXT; named BIGINT;
BEGIN
  UPDATE warehouse SET w_ytd = w_ytd + amount WHERE w_id = w RETURNING w_name INTO warehouse_name;
  UPDATE district SET d_ytd = d_ytd + amount WHERE d_w_id = w AND d_id = d
   RETURNING d_name INTO district_name;
  payer := c;
  IF c = 0 THEN
    SELECT count(*) INTO named FROM customer WHERE c_w_id = cw AND c_d_id = cd AND c_last = last;
    SELECT c_id INTO STRICT payer FROM customer WHERE c_w_id = cw AND c_d_id = cd AND c_last = last
     ORDER BY c_first OFFSET (named - 1) / 2 LIMIT 1;
  END IF;
  UPDATE customer SET c_balance = c_balance - amount, c_ytd_payment = c_ytd_payment + amount,
    c_payment_cnt = c_payment_cnt + 1,
    c_data = CASE c_credit WHEN 'BC' THEN left(
      concat_ws(' ', payer, cd, cw, d, w, amount || '.00', '| ') || c_data, 500) ELSE c_data END
   WHERE c_w_id = cw AND c_d_id = cd AND c_id = payer RETURNING c_balance INTO STRICT balance;
  INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data)
   VALUES (payer, cd, cw, d, w, CURRENT_TIMESTAMP, amount,
     left(warehouse_name, 10) || '    ' || left(district_name, 10));
  RETURN NEXT;
END $$
