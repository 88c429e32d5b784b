/**
 * Runs the commands of the guides for clusters on a real API server, controller manager and Metacontroller, with the pods
 * on the test node. The images have the names that `kind load docker-image` gives them.
 */
import t, { type Test } from 'tap'
import { clusterSession } from '../../helpers/docs/cluster-session.ts'
import { runSession } from '../../helpers/docs/run-session.ts'
import { findProgram } from '../../helpers/kube/assets.ts'
import { helmMissing } from '../../helpers/kube/helm.ts'
import { insideNamespaces, isInsideNamespaces, startCluster } from '../../helpers/kube/node/index.ts'
import { installationMissing, quickstartImages } from '../../helpers/kube/node/installation.ts'
import { home } from '../../../schemas/index.ts'

const missing = helmMissing() || installationMissing()

async function scenario(t: Test): Promise<void> {
  t.setTimeout(600_000)
  const { kube } = await startCluster(t, (folder) => {
    const images = [...quickstartImages(folder)]
    const loaded = images.map(
      ([name, image]) => [name.replace(home.registry, 'docker.io/library'), image] as const,
    )
    return new Map([...images, ...loaded])
  })
  const helm = findProgram('helm') ?? ''
  await t.test(clusterSession.name, (t) =>
    runSession(t, clusterSession, {
      env: { KUBECONFIG: kube.kubeconfig },
      programs: helm.includes('/') ? { helm } : {},
    }),
  )
}

t.setTimeout(600_000)

if (missing) t.test('the commands of the guides for clusters', { skip: missing }, () => {})
else if (isInsideNamespaces()) await t.test('the commands of the guides for clusters', scenario)
else await insideNamespaces(t, import.meta.filename)
