/**
 * Produces the symptoms of the troubleshooting guide with the real programs. The test has its own network namespace, so
 * the ports in the guide are free.
 */
import { execFileSync } from 'node:child_process'
import { join, resolve } from 'node:path'
import t, { type Test } from 'tap'
import { runSession } from '../../helpers/docs/run-session.ts'
import {
  noDefinitions,
  noHooks,
  noMetacontroller,
  symptomSessions,
} from '../../helpers/docs/symptom-sessions.ts'
import { kubeMissing, startKubeApiserver } from '../../helpers/kube/apiserver.ts'
import { insideNamespaces, isInsideNamespaces, nodeMissing } from '../../helpers/kube/node/index.ts'

const manifests = resolve(import.meta.dirname, '../../../manifests')

async function laptop(t: Test): Promise<void> {
  t.setTimeout(600_000)
  execFileSync('ip', ['link', 'set', 'lo', 'up'])
  for (const session of symptomSessions) await t.test(session.name, (t) => runSession(t, session))
}

async function cluster(t: Test): Promise<void> {
  t.setTimeout(300_000)
  const kube = await startKubeApiserver(t)
  const run = (session: typeof noHooks) =>
    t.test(session.name, (t) => runSession(t, session, { env: { KUBECONFIG: kube.kubeconfig } }))
  await run(noDefinitions)
  kube.must(['apply', '--server-side', '-f', join(manifests, 'crds')])
  kube.must(['wait', '--for=condition=Established', 'crd', '--all', '--timeout=60s'])
  kube.must(['apply', '-k', join(manifests, 'examples/quickstart')])
  await run(noMetacontroller)
  kube.must(['apply', '-f', join(manifests, 'base/admission.yaml')])
  await run(noHooks)
}

t.setTimeout(900_000)
const missing = nodeMissing()

if (missing) t.test('symptoms on a laptop', { skip: missing }, () => {})
else if (isInsideNamespaces()) {
  await t.test('symptoms on a laptop', laptop)
  await t.test('symptoms on a cluster', { skip: kubeMissing() }, cluster)
} else await insideNamespaces(t, import.meta.filename)
