/** How a pod finds the Kubernetes API, and what it says where it cannot. */
import t from 'tap'
import { clusterApi } from '../../../runtime/kube/index.ts'

t.test('cluster API: none outside of a cluster', async (t) => {
  t.equal(clusterApi({}), undefined)
  t.equal(clusterApi({ KUBERNETES_SERVICE_HOST: '' }), undefined)
})

t.test('cluster API: a pod without a service account is told which setting gives it one', async (t) => {
  t.throws(() => clusterApi({ KUBERNETES_SERVICE_HOST: '10.0.0.1' }), {
    code: 'INVALID_CONFIG',
    message: /serviceaccount\/ca\.crt cannot be read: .* \(automountServiceAccountToken\)/,
  })
})
