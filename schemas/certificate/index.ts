/** Public API of the serving certificate: what is wrong with a pair, and files that are followed when they change. */
export { certificatesIn, pairViolations, serverName } from './pair.ts'
export { type CertificateFiles, certificateEndsAt, checkCertificate, ServedCertificate } from './served.ts'
