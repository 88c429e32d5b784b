/** Codes of a cluster: API server, definitions, hooks, Metacontroller, resources. */
export const clusterCodes = {
  'cluster.unreachable': {
    expected: 'a response of the API server',
    fix: 'Check the context (kubectl config current-context), the VPN and the address of the API server.',
  },
  'cluster.credentials': {
    expected: 'credentials that the cluster accepts',
    fix: 'Sign in to the cluster again: the token or certificate of the context is refused.',
  },
  'cluster.rights': {
    expected: 'permission to read what is checked',
    fix: 'Run with a role that may read definitions, webhook configurations, deployments and the resources of gatehouse.dev.',
  },
  'cluster.crds': {
    expected: 'the definitions of all kinds, established, with this version',
    fix: 'Apply the definitions first: kubectl apply --server-side -f manifests/crds, then restart Metacontroller.',
  },
  'cluster.webhook': {
    expected: 'the ValidatingWebhookConfiguration gatehouse-hooks',
    fix: 'Apply the installation again (kubectl apply -k manifests): nothing is validated at admission.',
  },
  'cluster.webhook-ca': {
    expected: 'a caBundle in every webhook',
    fix: 'The job or cert-manager that writes caBundle has not run: look at its log; until then every apply fails with x509.',
  },
  'cluster.webhook-expired': {
    expected: 'an authority in caBundle that is valid for more than 14 days',
    fix: 'Rotate the certificates of the hooks: run the certificate job, or look at cert-manager.',
  },
  'cluster.hooks': {
    expected: 'the Deployment of the hooks is available',
    fix: 'Look at its pods (kubectl describe, kubectl logs): without them nothing is admitted or reconciled.',
  },
  'cluster.metacontroller': {
    expected: 'Metacontroller, available, and a CompositeController for each kind',
    fix: 'Install Metacontroller, then apply the installation again (kubectl apply -k manifests). One that does not run: look at its pod.',
  },
  'cluster.revision': {
    expected: 'hook URLs of this version of gatehouse',
    fix: 'Apply the installation of this version, or use the gatehouse of the version in the cluster.',
  },
  'cluster.stale': {
    expected: 'observedGeneration follows generation within 60 seconds',
    fix: 'Nobody reconciles: look at the log of Metacontroller and restart it, which it also needs after changes of definitions.',
  },
  'cluster.condition': {
    expected: 'no condition tells of a problem',
    fix: 'gatehouse cluster why KIND/NAME names the cause and the next step; the troubleshooting guide explains each reason.',
  },
} as const
