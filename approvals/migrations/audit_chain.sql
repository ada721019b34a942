-- The sealed trail. An entry is sealed when its act commits: a deferred trigger takes the head row, which stays locked
-- until that commit, numbers the entry and hashes it onto the one before. Nothing slow happens under that lock, and
-- nobody holds it while waiting for another row.

CREATE FUNCTION audit_canonical(seq bigint, e approvals_auditevent) RETURNS text LANGUAGE sql STABLE AS $$
  SELECT jsonb_build_array(
    seq, e.id, to_char(e.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), e.act, e.action, e.actor_kind,
    e.actor_id, e.actor_name, e.object_kind, e.object_id, e.object_name, e.thread_id, e.run_id, e.data
  )::text
$$;

CREATE FUNCTION audit_seal() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  head approvals_audithead;
  digest bytea;
BEGIN
  INSERT INTO approvals_audithead VALUES ('main', 0, sha256('counterseal')) ON CONFLICT DO NOTHING;
  SELECT * INTO STRICT head FROM approvals_audithead WHERE chain = 'main' FOR UPDATE;
  digest := sha256(head.hash || convert_to(audit_canonical(head.seq + 1, NEW), 'UTF8'));
  INSERT INTO approvals_auditseal (seq, event_id, prev, hash) VALUES (head.seq + 1, NEW.id, head.hash, digest);
  UPDATE approvals_audithead SET seq = head.seq + 1, hash = digest WHERE chain = 'main';
  RETURN NULL;
END $$;

CREATE FUNCTION audit_deny() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF pg_trigger_depth() > 1 THEN  -- the seal's own writes
    RETURN NEW;
  END IF;
  RAISE EXCEPTION 'the audit trail is append-only' USING ERRCODE = '42501';
END $$;

CREATE CONSTRAINT TRIGGER audit_seal AFTER INSERT ON approvals_auditevent
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION audit_seal();

CREATE TRIGGER audit_deny BEFORE UPDATE OR DELETE ON approvals_auditevent FOR EACH ROW EXECUTE FUNCTION audit_deny();
CREATE TRIGGER audit_deny BEFORE INSERT OR UPDATE OR DELETE ON approvals_auditseal FOR EACH ROW EXECUTE FUNCTION audit_deny();
CREATE TRIGGER audit_deny BEFORE INSERT OR UPDATE OR DELETE ON approvals_audithead FOR EACH ROW EXECUTE FUNCTION audit_deny();
CREATE TRIGGER audit_deny_all BEFORE TRUNCATE ON approvals_auditevent FOR EACH STATEMENT EXECUTE FUNCTION audit_deny();
CREATE TRIGGER audit_deny_all BEFORE TRUNCATE ON approvals_auditseal FOR EACH STATEMENT EXECUTE FUNCTION audit_deny();
CREATE TRIGGER audit_deny_all BEFORE TRUNCATE ON approvals_audithead FOR EACH STATEMENT EXECUTE FUNCTION audit_deny();
