//! Linux' own initiator: open-iscsi, dm-multipath, sg3-utils and file systems of a guest
//! that is a host of the array, over cables that are cut.

mod access;
mod copies;
mod files;
mod paths;
mod reservations;
mod sg3;
mod site;
