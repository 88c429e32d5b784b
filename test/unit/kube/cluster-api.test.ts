/** How a pod finds the Kubernetes API, and its error outside a cluster. */
import t from 'tap'
import { clusterApi } from '../../../runtime/kube/index.ts'

t.test('cluster API: none outside a cluster', async (t) => {
  t.equal(clusterApi({}), undefined)
  t.equal(clusterApi({ KUBERNETES_SERVICE_HOST: '' }), undefined)
})

t.test('cluster API: the error for a pod without a service account names the missing setting', async (t) => {
  t.throws(() => clusterApi({ KUBERNETES_SERVICE_HOST: '10.0.0.1' }), {
    code: 'INVALID_CONFIG',
    message: /serviceaccount\/ca\.crt cannot be read: .* \(automountServiceAccountToken\)/,
  })
})
