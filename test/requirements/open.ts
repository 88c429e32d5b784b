/** Requirements that no test proves yet. Written by `node test/requirements/print.ts --write-open`; only shrinks. */
export const open: readonly string[] = []
