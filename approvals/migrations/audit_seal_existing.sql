-- Entries from before the chain are sealed as they stand, in their order.
DO $$
DECLARE
  e approvals_auditevent;
  n bigint := 0;
  last bytea := sha256('counterseal');
  digest bytea;
BEGIN
  FOR e IN SELECT * FROM approvals_auditevent ORDER BY id LOOP
    n := n + 1;
    digest := sha256(last || convert_to(audit_canonical(n, e), 'UTF8'));
    INSERT INTO approvals_auditseal (seq, event_id, prev, hash) VALUES (n, e.id, last, digest);
    last := digest;
  END LOOP;
  INSERT INTO approvals_audithead (chain, seq, hash) VALUES ('main', n, last);
END $$;
