/** Codes for findings in a cluster: API server, definitions, hooks, Metacontroller, resources. */
export const clusterCodes = {
  'cluster.unreachable': {
    expected: 'a response from the API server',
    fix: 'Check the context (kubectl config current-context), the VPN and the API server’s address.',
  },
  'cluster.credentials': {
    expected: 'credentials that the cluster accepts',
    fix: 'Log in to the cluster again: the cluster rejected the context’s token or certificate.',
  },
  'cluster.rights': {
    expected: 'permission to read everything that is checked',
    fix: 'Run this command with a role that can read custom resource definitions, webhook configurations, Deployments and gatehouse.dev resources.',
  },
  'cluster.crds': {
    expected: 'established definitions of all kinds, which serve this API version',
    fix: 'Apply the definitions first: kubectl apply --server-side -f manifests/crds, then restart Metacontroller.',
  },
  'cluster.webhook': {
    expected: 'the ValidatingWebhookConfiguration gatehouse-hooks',
    fix: 'Apply the installation again (kubectl apply -k manifests): until then, nothing is validated at admission.',
  },
  'cluster.webhook-ca': {
    expected: 'a caBundle in every webhook',
    fix: 'The certificate job or cert-manager has not written caBundle: check its log. Until caBundle is written, every apply fails with an x509 error.',
  },
  'cluster.webhook-expired': {
    expected: 'an authority in caBundle that does not expire within 14 days',
    fix: 'Rotate the hooks’ certificates: run the certificate job, or check cert-manager.',
  },
  'cluster.hooks': {
    expected: 'the hooks’ Deployment is available',
    fix: 'Check the Deployment’s pods (kubectl describe, kubectl logs): without them, nothing is admitted or reconciled.',
  },
  'cluster.metacontroller': {
    expected: 'an available Metacontroller, and a CompositeController for each kind',
    fix: 'Install Metacontroller, then apply the installation again (kubectl apply -k manifests). If Metacontroller is not running, check its pod.',
  },
  'cluster.revision': {
    expected: 'hook URLs that contain this version of gatehouse',
    fix: 'Install this version in the cluster, or use the version of gatehouse that is installed there.',
  },
  'cluster.stale': {
    expected: 'observedGeneration catches up with generation within 60 seconds',
    fix: 'The resources are not being reconciled: check Metacontroller’s log and restart it. A restart is also required after changes to the definitions.',
  },
  'cluster.condition': {
    expected: 'no condition reports a problem',
    fix: 'Run gatehouse cluster why KIND/NAME to see the cause and the next step; the troubleshooting guide explains each reason.',
  },
} as const
