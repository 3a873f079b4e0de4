(w INT, d INT, threshold INT)
RETURNS TABLE (low BIGINT) LANGUAGE plpgsql AS $$
DECLARE
  next_no INT;
BEGIN
  SELECT d_next_o_id INTO next_no FROM district WHERE d_w_id = w AND d_id = d;
  RETURN QUERY SELECT COUNT(DISTINCT s_i_id) FROM order_line, stock
   WHERE ol_w_id = w AND ol_d_id = d AND ol_o_id < next_no AND ol_o_id >= next_no - 20
     AND s_w_id = w AND s_i_id = ol_i_id AND s_quantity < threshold;
END $$
