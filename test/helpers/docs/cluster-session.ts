/** The session that `test/e2e/docs/cluster-commands.test.ts` runs on one cluster: install, quickstart, remove. */
import type { Session } from './sessions.ts'

const install = 'docs/guides/install.md'
const kind = 'docs/guides/kind.md'
const quickstart = 'docs/guides/quickstart-cluster.md'

export const clusterSession: Session = {
  name: 'install, quickstart, remove',
  steps: [
    {
      page: kind,
      command:
        'helm install gatehouse manifests/chart --namespace gatehouse-system --create-namespace --wait --set images.hooks=docker.io/library/gatehouse-hooks:0.1.0 --set images.runtime=docker.io/library/gatehouse:0.1.0',
      prints: /STATUS: deployed/,
    },
    { page: kind, command: 'helm test gatehouse -n gatehouse-system', prints: /Phase: +Succeeded/ },
    { page: install, command: 'helm test gatehouse -n gatehouse-system', prints: /Phase: +Succeeded/ },
    {
      page: install,
      command: 'kubectl label namespace gatehouse-system pod-security.kubernetes.io/enforce=restricted',
      prints: /namespace\/gatehouse-system labeled$/m,
    },
    {
      page: install,
      command: 'kubectl -n gatehouse-system get pods',
      prints: /(?:gatehouse-hooks-\S+ +1\/1 +Running[^]*){2}/,
    },
    {
      page: install,
      command: 'kubectl -n gatehouse-system logs -l app.kubernetes.io/name=gatehouse-certificates --tail=-1',
      prints: /the certificate is valid until/,
    },
    {
      page: install,
      command: 'kubectl get compositecontrollers',
      prints: /virtualmcpservers\.gatehouse\.dev/,
    },
    {
      page: install,
      command: 'kubectl apply -k manifests/examples/oidc && kubectl get gatehouse',
      prints: /mcpoidcconfig\.gatehouse\.dev/,
    },
    { page: kind, command: 'kubectl apply -k manifests/examples/quickstart', prints: /quickstart created/ },
    {
      page: kind,
      command: 'kubectl wait vmcp/quickstart --for=condition=Ready --timeout=5m',
      prints: /condition met/,
    },
    {
      page: quickstart,
      command: 'kubectl apply -k manifests/examples/quickstart',
      prints: /quickstart unchanged/,
    },
    {
      page: quickstart,
      command: 'kubectl get gatehouse',
      prints: /virtualmcpserver\.gatehouse\.dev\/quickstart/,
    },
    {
      page: quickstart,
      command: 'kubectl wait vmcp/quickstart --for=condition=Ready --timeout=120s',
      prints: /condition met/,
    },
    {
      page: quickstart,
      command: "kubectl get vmcp quickstart -o jsonpath='{.status.url}'",
      prints: /^http:\/\/vmcp-quickstart\.default\.svc\.cluster\.local:4483\/mcp$/,
    },
    {
      page: quickstart,
      command: 'kubectl delete -k manifests/examples/quickstart',
      prints: /"quickstart" deleted/,
    },
    {
      page: install,
      command:
        'kubectl -n gatehouse-system create job --from=cronjob/gatehouse-certificates rotate --dry-run=client -o json | jq \'.spec.template.spec.containers[0].args += ["--force", "--settle", "0s"]\' | kubectl apply -f -',
      prints: /job\.batch\/rotate created/,
    },
    // The guide runs this command twice, because the second run deletes the objects that were in use.
    { page: install, command: 'kubectl delete gatehouse --all -A', prints: /is in use by/, code: 1 },
    { page: install, command: 'kubectl delete gatehouse --all -A', prints: /deleted/ },
    { page: install, command: 'helm uninstall gatehouse -n gatehouse-system', prints: /uninstalled/ },
    {
      page: install,
      command: 'kubectl delete -f manifests/crds',
      prints: /mcpgroups\.gatehouse\.dev" deleted/,
    },
    { page: install, command: 'kubectl delete namespace gatehouse-system', prints: /deleted/ },
  ],
}
