(w INT, carrier INT) RETURNS TABLE (delivered INT) LANGUAGE plpgsql AS $$
DECLARE
  number INT; receiver INT; worth NUMERIC;
BEGIN
  delivered := 0;
  FOR d IN 1..10 LOOP
    SELECT no_o_id INTO number FROM new_order WHERE no_w_id = w AND no_d_id = d
     ORDER BY no_o_id LIMIT 1 FOR UPDATE;
    CONTINUE WHEN NOT FOUND;
    DELETE FROM new_order WHERE no_w_id = w AND no_d_id = d AND no_o_id = number;
    UPDATE orders SET o_carrier_id = carrier WHERE o_w_id = w AND o_d_id = d AND o_id = number
     RETURNING o_c_id INTO receiver;
    UPDATE order_line SET ol_delivery_d = CURRENT_TIMESTAMP
     WHERE ol_w_id = w AND ol_d_id = d AND ol_o_id = number;
    SELECT SUM(ol_amount) INTO worth FROM order_line
     WHERE ol_w_id = w AND ol_d_id = d AND ol_o_id = number;
    UPDATE customer SET c_balance = c_balance + worth, c_delivery_cnt = c_delivery_cnt + 1
     WHERE c_w_id = w AND c_d_id = d AND c_id = receiver;
    delivered := delivered + 1;
  END LOOP;
  RETURN NEXT;
END $$
