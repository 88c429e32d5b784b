/** Public API of the certificates module: the command that the hooks program carries, and what tests need of its parts. */
export { connect } from './cluster.ts'
export { addCertificatesCommand, serviceNames } from './command.ts'
export { type Fitness, fitness, joinBundle, sameBundle, splitBundle } from './inspect.ts'
export { type Issued, issue } from './issue.ts'
export { plan, type Stored } from './plan.ts'
export { type Cluster, publish, rotate, type TrustTarget } from './rotate.ts'
