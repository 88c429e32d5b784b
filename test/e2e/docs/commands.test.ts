/**
 * Runs the commands of the guides that need no cluster. The test has its own network namespace, so the ports in the guides
 * are free and nothing is downloaded.
 */
import { execFileSync } from 'node:child_process'
import t, { type Test } from 'tap'
import { runSession } from '../../helpers/docs/run-session.ts'
import { sessions } from '../../helpers/docs/sessions.ts'
import { insideNamespaces, isInsideNamespaces, nodeMissing } from '../../helpers/kube/node/index.ts'

async function scenario(t: Test): Promise<void> {
  t.setTimeout(600_000)
  execFileSync('ip', ['link', 'set', 'lo', 'up'])
  for (const session of sessions) await t.test(session.name, (t) => runSession(t, session))
}

t.setTimeout(600_000)
const missing = nodeMissing()

if (missing) t.test('the commands of the guides', { skip: missing }, () => {})
else if (isInsideNamespaces()) await t.test('the commands of the guides', scenario)
else await insideNamespaces(t, import.meta.filename)
