/** Public API for serving certificates: validates pairs, and reloads their files when they change. */
export { certificatesIn, pairViolations, serverName } from './pair.ts'
export {
  type CertificateFiles,
  certificateEndsAt,
  checkCertificate,
  isAuthority,
  ServedCertificate,
} from './served.ts'
