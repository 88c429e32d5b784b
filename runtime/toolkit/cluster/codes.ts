/** Codes for a cluster: API server, definitions, hooks, Metacontroller, resources. */
export const clusterCodes = {
  'cluster.unreachable': {
    expected: 'a response from the API server',
    fix: 'Check the context (kubectl config current-context), the VPN and the address of the API server.',
  },
  'cluster.credentials': {
    expected: 'credentials that the cluster accepts',
    fix: 'Log in to the cluster again: the token or certificate of the context is rejected.',
  },
  'cluster.rights': {
    expected: 'permission to read what is checked',
    fix: 'Run this with a role that can read definitions, webhook configurations, deployments and the resources of gatehouse.dev.',
  },
  'cluster.crds': {
    expected: 'established definitions of all kinds, with this version',
    fix: 'Apply the definitions first: kubectl apply --server-side -f manifests/crds, then restart Metacontroller.',
  },
  'cluster.webhook': {
    expected: 'the ValidatingWebhookConfiguration gatehouse-hooks',
    fix: 'Apply the installation again (kubectl apply -k manifests): nothing is validated at admission.',
  },
  'cluster.webhook-ca': {
    expected: 'a caBundle in every webhook',
    fix: 'The job or cert-manager that writes caBundle has not run: check its log. Until then, every apply fails with an x509 error.',
  },
  'cluster.webhook-expired': {
    expected: 'an authority in caBundle that is valid for more than 14 days',
    fix: 'Rotate the certificates of the hooks: run the certificate job, or check cert-manager.',
  },
  'cluster.hooks': {
    expected: 'the Deployment of the hooks is available',
    fix: 'Check its pods (kubectl describe, kubectl logs): without them, nothing is admitted or reconciled.',
  },
  'cluster.metacontroller': {
    expected: 'an available Metacontroller, and a CompositeController for each kind',
    fix: 'Install Metacontroller, then apply the installation again (kubectl apply -k manifests). If Metacontroller is not running, check its pod.',
  },
  'cluster.revision': {
    expected: 'hook URLs of this version of gatehouse',
    fix: 'Install this version in the cluster, or use the gatehouse version of the cluster.',
  },
  'cluster.stale': {
    expected: 'observedGeneration follows generation within 60 seconds',
    fix: 'The resources are not reconciled: check the log of Metacontroller and restart it. A restart is also required after changes of definitions.',
  },
  'cluster.condition': {
    expected: 'no condition reports a problem',
    fix: 'gatehouse cluster why KIND/NAME prints the cause and the next step; the troubleshooting guide explains each reason.',
  },
} as const
