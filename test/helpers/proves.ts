/**
 * Cites the requirement that a test proves. The gate (test/unit/requirements.test.ts) reads these calls from the
 * source of every test file, so ids are written as plain string literals.
 */
export function proves(..._ids: readonly string[]): void {}
